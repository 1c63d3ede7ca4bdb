#include "kernel/partition/compaction_plan.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

constexpr std::int64_t now_ms = 1'700'000'000'000;
constexpr Timestamp now{now_ms};

// Segments of ten offsets; the last is active.
std::vector<SegmentInfo> segments(std::vector<std::uint64_t> bytes) {
  std::vector<SegmentInfo> list;
  std::int64_t base = 0;
  for (const auto size : bytes) {
    list.push_back({.base = {base},
                    .next = {base + 10},
                    .bytes = size,
                    .max_timestamp = {now_ms - 1000},
                    .modified = now});
    base += 10;
  }
  list.back().active = true;
  return list;
}

CleanableRange plan(const std::vector<SegmentInfo>& list, std::int64_t cleaned_to,
                    std::int64_t stable = 1000, const TopicConfig& config = {},
                    std::int64_t start = 0) {
  return plan_cleaning(list, config, now, {.start = {start}, .end = list.back().next}, {stable},
                       {cleaned_to});
}

TEST(CompactionPlanTest, TheActiveSegmentIsNotCleaned) {
  const auto range = plan(segments({100, 200, 400, 800}), 10);
  EXPECT_EQ(range.first_dirty, Offset{10});
  EXPECT_EQ(range.limit, Offset{30});
  EXPECT_EQ(range.clean_bytes, 100);
  EXPECT_EQ(range.dirty_bytes, 600);
  EXPECT_NEAR(range.dirty_ratio(), 600.0 / 700, 1e-9);
  EXPECT_EQ(plan(segments({100}), 0).limit, Offset{0});
}

TEST(CompactionPlanTest, NothingAtOrBeyondTheLastStableOffsetIsCleaned) {
  const auto list = segments({100, 200, 400, 800});
  EXPECT_EQ(plan(list, 0, 30).limit, Offset{30});
  EXPECT_EQ(plan(list, 0, 29).limit, Offset{20});
  EXPECT_EQ(plan(list, 0, 9).limit, Offset{0});
  EXPECT_EQ(plan(list, 0, 9).dirty_bytes, 0);
}

TEST(CompactionPlanTest, WhatIsTooYoungStays) {
  auto list = segments({100, 200, 400, 800});
  const TopicConfig config{.min_compaction_lag_ms = 500};
  list[1].max_timestamp = {now_ms - 400};
  EXPECT_EQ(plan(list, 0, 1000, config).limit, Offset{10});   // also what is older behind it
  EXPECT_EQ(plan(list, 20, 1000, config).limit, Offset{30});  // it is clean already
  list[1].max_timestamp = {};                                 // nobody knows: the file's age counts
  EXPECT_EQ(plan(list, 0, 1000, config).limit, Offset{10});
  list[1].modified = {now_ms - 600};
  EXPECT_EQ(plan(list, 0, 1000, config).limit, Offset{30});
}

TEST(CompactionPlanTest, WhatWasCleanedOfAnotherLogCountsForNothing) {
  const auto list = segments({100, 200, 400});
  EXPECT_EQ(plan(list, 31).first_dirty, Offset{0});
  EXPECT_EQ(plan(list, -1).first_dirty, Offset{0});
  EXPECT_EQ(plan(list, 5, 1000, {}, 12).first_dirty, Offset{12});
}

TEST(CompactionPlanTest, K05_BehindATrimIntoTheActiveSegmentNothingIsToBeCleaned) {
  const auto list = segments({100, 200, 400});
  const auto range = plan(list, 5, 1000, {}, 25);
  EXPECT_EQ(range.first_dirty, Offset{25});
  EXPECT_LE(range.limit, range.first_dirty);
  EXPECT_FALSE(wants_cleaning(range, {.min_cleanable_dirty_ratio = 0}, now, {}));
}

TEST(CompactionPlanTest, TheDirtiestWantCleaning) {
  const auto wants = [](std::uint64_t clean, std::uint64_t dirty, const TopicConfig& config) {
    return wants_cleaning(
        {.first_dirty = {10}, .limit = {20}, .clean_bytes = clean, .dirty_bytes = dirty}, config,
        now, {now_ms - 1000});
  };
  EXPECT_FALSE(wants(50, 50, {}));
  EXPECT_TRUE(wants(49, 51, {}));
  EXPECT_TRUE(wants(99, 1, {.min_cleanable_dirty_ratio = 0}));
  EXPECT_FALSE(wants(0, 0, {.min_cleanable_dirty_ratio = 0}));
  EXPECT_FALSE(wants(0, 100, {.min_cleanable_dirty_ratio = 1}));
  // Dirty enough or not, once it has waited too long.
  EXPECT_FALSE(wants(99, 1, {.max_compaction_lag_ms = 1000}));
  EXPECT_TRUE(wants(99, 1, {.max_compaction_lag_ms = 999}));
  EXPECT_FALSE(wants(99, 0, {.max_compaction_lag_ms = 999}));
}

auto group(std::int64_t from, std::int64_t to, std::size_t count) {
  return ::testing::AllOf(Field(&SegmentGroup::from, Offset{from}),
                          Field(&SegmentGroup::to, Offset{to}),
                          Field(&SegmentGroup::segments, count));
}

TEST(CompactionPlanTest, SmallSegmentsGoTogether) {
  const auto list = segments({400, 300, 300, 1, 900, 2000, 50, 10});
  const TopicConfig config{.segment_bytes = 1000};
  EXPECT_THAT(group_segments(list, {70}, config),
              ElementsAre(group(0, 30, 3), group(30, 50, 2), group(50, 60, 1), group(60, 70, 1)));
  EXPECT_THAT(group_segments(list, {31}, config), ElementsAre(group(0, 30, 3), group(30, 40, 1)));
  EXPECT_THAT(group_segments(list, {0}, config), ElementsAre());
}

TEST(CompactionPlanTest, AGroupIsWithinItsIndexes) {
  const auto list = segments({400, 300, 300, 10});
  const TopicConfig config{.index_interval_bytes = 100, .segment_index_bytes = 96};
  EXPECT_THAT(group_segments(list, {30}, config), ElementsAre(group(0, 20, 2), group(20, 30, 1)));
}

TEST(CompactionPlanTest, AGroupSpansNoMoreThanASegmentMay) {
  auto list = segments({10, 10, 10, 10});
  list[1].next = list[2].base = {1LL << 31};
  list[2].next = list[3].base = {(1LL << 31) + 5};
  EXPECT_THAT(group_segments(list, {1LL << 40}, {}),
              ElementsAre(group(0, 10, 1), group(10, (1LL << 31) + 5, 2)));
}

}  // namespace
}  // namespace millrace::kernel
