#include "kernel/log/metrics_registry.h"

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

TEST(MetricsRegistryTest, TheSameNameIsTheSameMetric) {
  MetricsRegistry registry;
  auto& first = registry.counter("millrace_requests_total", "Requests");
  for (int n = 0; n < 100; ++n) registry.counter("other_" + std::to_string(n), "");
  registry.counter("millrace_requests_total", "").add(3);
  EXPECT_EQ(first.value(), 3u);
}

TEST(MetricsRegistryTest, SamplesAreSortedByName) {
  MetricsRegistry registry;
  registry.gauge("b", "second").set(-1);
  registry.counter("a", "first").add(2);
  const auto samples = registry.samples();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].name, "a");
  EXPECT_EQ(samples[0].value, 2);
  EXPECT_EQ(samples[1].type, MetricSample::Type::gauge);
  EXPECT_EQ(samples[1].value, -1);
}

}  // namespace
}  // namespace millrace::kernel
