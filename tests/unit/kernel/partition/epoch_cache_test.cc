#include "kernel/partition/epoch_cache.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

EpochCache three_epochs() {
  EpochCache cache;
  cache.assign({1}, {0});
  cache.assign({3}, {10});
  cache.assign({4}, {20});
  return cache;
}

TEST(EpochCacheTest, KnowsTheEpochOfAnOffset) {
  const auto cache = three_epochs();
  EXPECT_EQ(cache.epoch_of({0}), Epoch{1});
  EXPECT_EQ(cache.epoch_of({9}), Epoch{1});
  EXPECT_EQ(cache.epoch_of({10}), Epoch{3});
  EXPECT_EQ(cache.epoch_of({1000}), Epoch{4});
  EXPECT_EQ(EpochCache().epoch_of({0}), Epoch{});
}

TEST(EpochCacheTest, KnowsWhereAnEpochEnds) {
  const auto cache = three_epochs();
  const auto end_of = [&cache](std::int32_t epoch) { return cache.end_of({epoch}, {25}); };
  EXPECT_EQ(end_of(-1), EpochCache::Entry{});
  EXPECT_EQ(end_of(0), (EpochCache::Entry{{0}, {0}}));
  EXPECT_EQ(end_of(1), (EpochCache::Entry{{1}, {10}}));
  EXPECT_EQ(end_of(2), (EpochCache::Entry{{1}, {10}}));
  EXPECT_EQ(end_of(3), (EpochCache::Entry{{3}, {20}}));
  EXPECT_EQ(end_of(4), (EpochCache::Entry{{4}, {25}}));
  EXPECT_EQ(end_of(9), EpochCache::Entry{});
  EXPECT_EQ(EpochCache().end_of({0}, {25}), EpochCache::Entry{});
}

TEST(EpochCacheTest, EpochsOnlyRise) {
  auto cache = three_epochs();
  EXPECT_FALSE(cache.assign({4}, {30}));
  EXPECT_FALSE(cache.assign({2}, {30}));
  EXPECT_FALSE(cache.assign({}, {30}));
  EXPECT_EQ(cache.entries().size(), 3U);
}

TEST(EpochCacheTest, AnEpochWithoutRecordsLeavesNoTrace) {
  auto cache = three_epochs();
  EXPECT_TRUE(cache.assign({6}, {20}));
  EXPECT_EQ(cache.checkpoint(), "0\n3\n1 0\n3 10\n6 20\n");
}

TEST(EpochCacheTest, FollowsTheLogsEnds) {
  auto cache = three_epochs();
  cache.trim_before({15});
  EXPECT_EQ(cache.checkpoint(), "0\n2\n3 15\n4 20\n");
  cache.truncate_from({20});
  EXPECT_EQ(cache.checkpoint(), "0\n1\n3 15\n");
  cache.truncate_from({0});
  EXPECT_EQ(cache.newest(), Epoch{});
}

TEST(EpochCacheTest, ReadsItsCheckpointBack) {
  const auto cache = three_epochs();
  const auto parsed = EpochCache::parse(cache.checkpoint());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->entries(), cache.entries());
}

TEST(EpochCacheTest, RefusesWhatIsNoCheckpoint) {
  const auto text = three_epochs().checkpoint();
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(EpochCache::parse(text.substr(0, size))) << size;
  }
  EXPECT_FALSE(EpochCache::parse("1\n0\n"));
  EXPECT_FALSE(EpochCache::parse("0\n1\n1 x\n"));
  EXPECT_FALSE(EpochCache::parse("0\n2\n1 5\n2 5\n"));
  EXPECT_FALSE(EpochCache::parse("0\n2\n2 5\n1 6\n"));
  EXPECT_FALSE(EpochCache::parse("0\n99999999999999999999999\n"));
}

TEST(EpochCacheTest, ReadsWhatKafkaWrote) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(MILLRACE_GOLDEN_DIR "/segments")) {
    if (entry.path().filename() != "leader-epoch-checkpoint") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    const auto parsed = EpochCache::parse(content.str());
    ASSERT_TRUE(parsed) << entry.path() << ": " << parsed.error().detail;
    EXPECT_EQ(parsed->checkpoint(), content.str());
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace millrace::kernel
