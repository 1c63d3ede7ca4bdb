#include "kernel/log/metrics_registry.h"

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using namespace std::chrono_literals;

TEST(MetricsRegistryTest, TheSameNameIsTheSameMetric) {
  MetricsRegistry registry;
  auto& first = registry.counter("millrace_requests_total", "Requests");
  for (int n = 0; n < 100; ++n) registry.counter("other_" + std::to_string(n), "");
  registry.counter("millrace_requests_total", "").add(3);
  EXPECT_EQ(first.value(), 3U);
}

TEST(MetricsRegistryTest, OtherLabelsAreAnotherSeries) {
  MetricsRegistry registry;
  registry.counter("millrace_requests_total", "Requests", {{"api", "Produce"}}).add(2);
  registry.counter("millrace_requests_total", "Requests", {{"api", "Fetch"}}).add();
  registry.counter("millrace_requests_total", "Requests", {{"api", "Produce"}}).add();
  const auto families = registry.read();
  ASSERT_EQ(families.size(), 1U);
  EXPECT_EQ(families[0].help, "Requests");
  ASSERT_EQ(families[0].samples.size(), 2U);
  EXPECT_EQ(families[0].samples[0].labels, (MetricLabels{{"api", "Fetch"}}));
  EXPECT_EQ(families[0].samples[0].value, 1);
  EXPECT_EQ(families[0].samples[1].labels, (MetricLabels{{"api", "Produce"}}));
  EXPECT_EQ(families[0].samples[1].value, 3);
}

TEST(MetricsRegistryTest, FamiliesAreSortedByNameAndSayTheirType) {
  MetricsRegistry registry;
  registry.histogram("c", "third", {}).observe(1500ms);
  registry.gauge("b", "second").set(-1);
  registry.counter("a", "first").add(2);
  const auto families = registry.read();
  ASSERT_EQ(families.size(), 3U);
  EXPECT_EQ(families[0].name, "a");
  EXPECT_EQ(families[0].type, MetricType::counter);
  EXPECT_EQ(families[0].samples[0].value, 2);
  EXPECT_EQ(families[1].type, MetricType::gauge);
  EXPECT_EQ(families[1].samples[0].value, -1);
  EXPECT_EQ(families[2].type, MetricType::histogram);
  EXPECT_EQ(families[2].samples[0].value, 1.5);
}

TEST(MetricsRegistryDeathTest, ANameHasOneType) {
  MetricsRegistry registry;
  registry.counter("millrace_x", "");
  EXPECT_DEATH(registry.gauge("millrace_x", ""), "holds_alternative");
}

TEST(HistogramTest, AValueIsInTheFirstBucketThatCanHoldIt) {
  const auto bucket_of = [](Histogram::Duration took) {
    Histogram histogram;
    histogram.observe(took);
    const auto counts = histogram.counts();
    return std::ranges::find(counts, 1U) - counts.begin();
  };
  EXPECT_EQ(bucket_of(-1ns), 0);
  EXPECT_EQ(bucket_of(0ns), 0);
  for (std::size_t at = 0; at + 1 < Histogram::buckets; ++at) {
    EXPECT_EQ(bucket_of(Histogram::bound(at)), at);
    EXPECT_EQ(bucket_of(Histogram::bound(at) + 1ns), at + 1);
  }
  EXPECT_EQ(bucket_of(1h), Histogram::buckets - 1);
}

TEST(HistogramTest, BoundsDouble) {
  EXPECT_EQ(Histogram::bound(0), 100us);
  EXPECT_EQ(Histogram::bound(1), 200us);
  EXPECT_EQ(Histogram::bound(Histogram::buckets - 2), 13107200us);
  EXPECT_EQ(Histogram::bound(Histogram::buckets - 1), Histogram::Duration::max());
}

}  // namespace
}  // namespace millrace::kernel
