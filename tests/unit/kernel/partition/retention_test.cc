#include "kernel/partition/retention.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

constexpr std::int64_t now_ms = 1'700'000'000'000;
constexpr Timestamp now{now_ms};

// Segments of ten records and 100 bytes each; the last is active.
std::vector<SegmentInfo> segments(std::vector<std::int64_t> max_timestamps) {
  std::vector<SegmentInfo> list;
  std::int64_t base = 0;
  for (const auto timestamp : max_timestamps) {
    list.push_back({.base = {base},
                    .next = {base + 10},
                    .bytes = 100,
                    .max_timestamp = {timestamp},
                    .modified = now});
    base += 10;
  }
  list.back().active = true;
  return list;
}

Offset end_of(const std::vector<SegmentInfo>& list) { return list.back().next; }

TEST(RetentionTest, KeepsWhatIsYoungEnough) {
  const TopicConfig config{.retention_ms = 1000};
  const auto list = segments({now_ms - 1000, now_ms});
  EXPECT_FALSE(plan_retention(list, config, now, end_of(list)));
}

TEST(RetentionTest, RemovesExpiredSegmentsFromTheFront) {
  const TopicConfig config{.retention_ms = 1000};
  const auto list = segments({now_ms - 3000, now_ms - 1001, now_ms, now_ms - 9000});
  const auto plan = plan_retention(list, config, now, end_of(list));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->first_kept, Offset{20});
  EXPECT_FALSE(plan->roll_active);
}

// Of a log that is compacted too.
TEST(RetentionTest, SegmentsOfWhichNothingIsLeftHoldUpNone) {
  const TopicConfig config{.retention_ms = 1000};
  auto list = segments({-1, now_ms - 3000, -1, now_ms});
  list[0].bytes = list[2].bytes = 0;
  const auto plan = plan_retention(list, config, now, end_of(list));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->first_kept, Offset{20});
  list[1].bytes = 0;
  EXPECT_FALSE(plan_retention(list, config, now, end_of(list)));
  list.back().bytes = 0;
  EXPECT_FALSE(plan_retention(list, config, now, end_of(list)));
}

TEST(RetentionTest, RollsAnExpiredActiveSegment) {
  const TopicConfig config{.retention_ms = 1000};
  const auto list = segments({now_ms - 2000});
  const auto plan = plan_retention(list, config, now, end_of(list));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->first_kept, Offset{10});
  EXPECT_TRUE(plan->roll_active);
}

// A record of the year 2300, or of the last time there is, keeps nothing: the file's own age
// counts.
TEST(RetentionTest, TimestampsOfTheFutureKeepNothingAlive) {
  const TopicConfig config{.retention_ms = 1000};
  for (const auto timestamp : {10'413'792'000'000, std::numeric_limits<std::int64_t>::max()}) {
    auto list = segments({timestamp, now_ms});
    list[0].modified = {now_ms - 1001};
    EXPECT_TRUE(plan_retention(list, config, now, end_of(list)));
    list[0].modified = {now_ms - 10};
    EXPECT_FALSE(plan_retention(list, config, now, end_of(list)));
  }
}

TEST(RetentionTest, WithoutTimestampsTheFilesAgeCounts) {
  const TopicConfig config{.retention_ms = 1000};
  auto list = segments({-1, now_ms});
  list[0].modified = {now_ms - 1001};
  EXPECT_TRUE(plan_retention(list, config, now, end_of(list)));
  list[0].modified = now;
  EXPECT_FALSE(plan_retention(list, config, now, end_of(list)));
}

TEST(RetentionTest, RemovesBySizeWhatIsBeyondTheLimitAsAWhole) {
  const auto list = segments({now_ms, now_ms, now_ms, now_ms});
  const auto kept_from = [&list](std::int64_t bytes) {
    const TopicConfig config{.retention_bytes = bytes};
    const auto plan = plan_retention(list, config, now, end_of(list));
    return plan ? plan->first_kept.value : 0;
  };
  EXPECT_EQ(kept_from(-1), 0);
  EXPECT_EQ(kept_from(400), 0);
  EXPECT_EQ(kept_from(301), 0);
  EXPECT_EQ(kept_from(300), 10);
  EXPECT_EQ(kept_from(200), 20);
  EXPECT_EQ(kept_from(0), 30);  // never the active one
}

TEST(RetentionTest, LeavesCompactedTopicsAlone) {
  const TopicConfig config{.cleanup_compact = true, .cleanup_delete = false, .retention_ms = 0};
  const auto list = segments({now_ms - 2000, now_ms});
  EXPECT_FALSE(plan_retention(list, config, now, end_of(list)));
}

TEST(RetentionTest, NothingAboveTheHighWatermarkGoes) {
  const TopicConfig config{.retention_ms = 1000};
  const auto list = segments({now_ms - 3000, now_ms - 3000, now_ms - 3000});
  const auto plan = plan_retention(list, config, now, Offset{19});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->first_kept, Offset{10});
}

TEST(RetentionTest, AnEmptyLogStays) {
  const TopicConfig config{.retention_ms = 0};
  auto list = segments({-1});
  list[0].bytes = 0;
  list[0].next = list[0].base;
  EXPECT_FALSE(plan_retention(list, config, now, end_of(list)));
}

}  // namespace
}  // namespace millrace::kernel
