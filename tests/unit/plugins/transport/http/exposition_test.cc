#include "plugins/transport/http/exposition.h"

#include <gtest/gtest.h>

namespace millrace::http_transport {
namespace {

MetricFamily gauge_of(double value, MetricLabels labels = {}) {
  return {"x", "Help", MetricType::gauge, {{.labels = std::move(labels), .value = value}}};
}

/// The line of the sample alone.
std::string sample_line(MetricFamily family) {
  const auto text = expose({std::move(family)});
  return text.substr(text.find("gauge\n") + 6);
}

TEST(ExpositionTest, AFamilyHasHelpAndTypeOnce) {
  const MetricFamily family{"millrace_requests_total",
                            "Requests",
                            MetricType::counter,
                            {{.labels = {{"api", "Fetch"}}, .value = 3},
                             {.labels = {{"api", "Produce"}, {"error", "NONE"}}, .value = 4}}};
  EXPECT_EQ(expose({family}),
            "# HELP millrace_requests_total Requests\n"
            "# TYPE millrace_requests_total counter\n"
            "millrace_requests_total{api=\"Fetch\"} 3\n"
            "millrace_requests_total{api=\"Produce\",error=\"NONE\"} 4\n");
}

TEST(ExpositionTest, AFamilyWithoutASeriesIsLeftOut) {
  EXPECT_EQ(expose({{"x", "Help", MetricType::gauge, {}}}), "");
}

TEST(ExpositionTest, NumbersAreWrittenAsTheyAre) {
  EXPECT_EQ(sample_line(gauge_of(0)), "x 0\n");
  EXPECT_EQ(sample_line(gauge_of(-17)), "x -17\n");
  EXPECT_EQ(sample_line(gauge_of(1234567890123456)), "x 1234567890123456\n");
  EXPECT_EQ(sample_line(gauge_of(0.25)), "x 0.25\n");
  EXPECT_EQ(sample_line(gauge_of(1e300)), "x 1e+300\n");
}

TEST(ExpositionTest, WhatEndsATextIsEscaped) {
  EXPECT_EQ(sample_line(gauge_of(1, {{"path", "a\"b\\c\nd"}})), "x{path=\"a\\\"b\\\\c\\nd\"} 1\n");
  auto family = gauge_of(1);
  family.help = "two\nlines, one \\ and \"quotes\"";
  EXPECT_TRUE(expose({family}).starts_with("# HELP x two\\nlines, one \\\\ and \"quotes\"\n"));
}

TEST(ExpositionTest, BucketsOfAHistogramAddUp) {
  MetricSample sample{.labels = {{"api", "Fetch"}}, .value = 0.75};
  sample.counts[0] = 2;
  sample.counts[1] = 1;
  sample.counts[Histogram::buckets - 1] = 1;
  const auto text = expose({{"took_seconds", "Time", MetricType::histogram, {sample}}});
  EXPECT_NE(text.find("# TYPE took_seconds histogram\n"
                      "took_seconds_bucket{api=\"Fetch\",le=\"0.0001\"} 2\n"
                      "took_seconds_bucket{api=\"Fetch\",le=\"0.0002\"} 3\n"
                      "took_seconds_bucket{api=\"Fetch\",le=\"0.0004\"} 3\n"),
            std::string::npos)
      << text;
  EXPECT_TRUE(
      text.ends_with("took_seconds_bucket{api=\"Fetch\",le=\"13.1072\"} 3\n"
                     "took_seconds_bucket{api=\"Fetch\",le=\"+Inf\"} 4\n"
                     "took_seconds_sum{api=\"Fetch\"} 0.75\n"
                     "took_seconds_count{api=\"Fetch\"} 4\n"))
      << text;
}

}  // namespace
}  // namespace millrace::http_transport
