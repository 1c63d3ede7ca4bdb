#include "plugins/transport/http/broker_metrics.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/transport/http/exposition.h"

namespace millrace::http_transport {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

PartitionSize partition(std::int32_t number, std::uint64_t bytes) {
  return {.partition = number,
          .bytes = bytes,
          .log_start = Offset{1},
          .last_stable = Offset{2},
          .high_watermark = Offset{3},
          .end = Offset{4},
          .appended_bytes = 5,
          .read_bytes = 6};
}

std::vector<LogFolder> folders() {
  return {{.path = "/data",
           .topics = {{"a", {partition(0, 10), partition(1, 20)}}, {"b", {partition(0, 30)}}},
           .bytes_total = 1000,
           .bytes_usable = 400}};
}

TEST(LogMetricsTest, EveryPartitionHasItsSeries) {
  const auto text = expose(log_metrics(folders(), 21));
  EXPECT_THAT(text, HasSubstr("\nmillrace_partition_bytes{topic=\"a\",partition=\"1\"} 20\n"));
  EXPECT_THAT(text, HasSubstr("\nmillrace_partition_bytes{topic=\"b\",partition=\"0\"} 30\n"));
  EXPECT_THAT(text,
              HasSubstr("\nmillrace_partition_start_offset{topic=\"b\",partition=\"0\"} 1\n"));
  EXPECT_THAT(
      text, HasSubstr("\nmillrace_partition_last_stable_offset{topic=\"b\",partition=\"0\"} 2\n"));
  EXPECT_THAT(text,
              HasSubstr("\nmillrace_partition_high_watermark{topic=\"b\",partition=\"0\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("\nmillrace_partition_end_offset{topic=\"b\",partition=\"0\"} 4\n"));
  EXPECT_THAT(
      text,
      HasSubstr("\nmillrace_partition_appended_bytes_total{topic=\"b\",partition=\"0\"} 5\n"));
  EXPECT_THAT(text,
              HasSubstr("\nmillrace_partition_read_bytes_total{topic=\"b\",partition=\"0\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("\nmillrace_partitions 3\n"));
  EXPECT_THAT(text, HasSubstr("\nmillrace_log_folder_bytes{path=\"/data\"} 1000\n"));
  EXPECT_THAT(text, HasSubstr("\nmillrace_log_folder_usable_bytes{path=\"/data\"} 400\n"));
}

TEST(LogMetricsTest, TooManyPartitionsAreSummedUpByTopic) {
  const auto text = expose(log_metrics(folders(), 20));
  EXPECT_THAT(text, HasSubstr("\nmillrace_partition_bytes{topic=\"a\"} 30\n"));
  EXPECT_THAT(text, HasSubstr("\nmillrace_partition_end_offset{topic=\"a\"} 8\n"));
  EXPECT_THAT(text, Not(HasSubstr("partition=\"")));
}

TEST(LogMetricsTest, WhatIsCompactedIsToldOfThat) {
  auto some = folders();
  EXPECT_THAT(expose(log_metrics(some, 100)), Not(HasSubstr("clean")));
  for (auto& one : some[0].topics[0].partitions) {
    one.cleaned_to = Offset{7};
    one.clean_bytes = 8;
    one.cleanable_bytes = 9;
    one.compacted_at = {12'345};
    one.compacting_percent = 40;
    one.uncleanable = true;
  }
  auto text = expose(log_metrics(some, 100));
  EXPECT_THAT(text, HasSubstr("millrace_partition_clean_bytes{topic=\"a\",partition=\"1\"} 8\n"));
  EXPECT_THAT(text,
              HasSubstr("millrace_partition_cleanable_bytes{topic=\"a\",partition=\"1\"} 9\n"));
  EXPECT_THAT(text,
              HasSubstr("millrace_partition_cleaned_offset{topic=\"a\",partition=\"1\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("millrace_partition_compacted_timestamp_seconds{topic=\"a\","
                              "partition=\"1\"} 12\n"));
  EXPECT_THAT(text, HasSubstr("millrace_partition_compacting_percent{topic=\"a\","
                              "partition=\"1\"} 40\n"));
  EXPECT_THAT(text, HasSubstr("millrace_partition_uncleanable{topic=\"a\",partition=\"1\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("clean_bytes{topic=\"b\"")));
  text = expose(log_metrics(some, 20));
  EXPECT_THAT(text, HasSubstr("millrace_partition_clean_bytes{topic=\"a\"} 16\n"));
  EXPECT_THAT(text, Not(HasSubstr("cleaned_offset")));
}

TEST(LogMetricsTest, TooManyTopicsAreSummedUp) {
  const auto text = expose(log_metrics(folders(), 13));
  EXPECT_THAT(text, HasSubstr("\nmillrace_partition_bytes 60\n"));
  EXPECT_THAT(text, Not(HasSubstr("topic=\"")));
}

TEST(LogMetricsTest, WhatAFolderDoesNotTellIsLeftOut) {
  auto unknown = folders();
  unknown[0].bytes_total = -1;
  EXPECT_THAT(expose(log_metrics(unknown, 100)), Not(HasSubstr("millrace_log_folder")));
}

}  // namespace
}  // namespace millrace::http_transport
