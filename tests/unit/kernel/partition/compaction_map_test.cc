#include "kernel/partition/compaction_map.h"

#include <cstdint>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

OffsetMap::Secret secret_of(std::uint8_t seed) {
  OffsetMap::Secret secret;
  for (std::size_t at = 0; at < secret.size(); ++at) {
    secret[at] = static_cast<std::byte>(at * 167 + seed);
  }
  return secret;
}

OffsetMap map_of(std::uint64_t bytes, double load = 0.9, std::uint64_t keys = UINT64_MAX) {
  auto map = OffsetMap::make(secret_of(7), bytes, load, keys);
  EXPECT_TRUE(map);
  return *std::move(map);
}

bool put(OffsetMap& map, const std::string& key, std::int64_t offset) {
  return map.put(as_bytes(key), {offset});
}

TEST(OffsetMapTest, KnowsTheNewestOffsetOfEachKey) {
  auto map = map_of(1 << 20);
  EXPECT_EQ(map.find(as_bytes("a")), Offset{});
  std::map<std::string, std::int64_t> expected;
  for (std::int64_t offset = 0; offset < 5000; ++offset) {
    const auto key = "key " + std::to_string(offset * 7919 % 1000);
    ASSERT_TRUE(put(map, key, offset));
    expected[key] = offset;
  }
  EXPECT_EQ(map.keys(), expected.size());
  for (const auto& [key, offset] : expected) ASSERT_EQ(map.find(as_bytes(key)), Offset{offset});
  EXPECT_EQ(map.find(as_bytes("key 1000")), Offset{});
}

TEST(OffsetMapTest, AnEmptyKeyIsOneToo) {
  auto map = map_of(1024);
  EXPECT_EQ(map.find({}), Offset{});
  EXPECT_TRUE(put(map, "", 0));
  EXPECT_EQ(map.find({}), Offset{0});
}

TEST(OffsetMapTest, AnOlderOffsetChangesNothing) {
  auto map = map_of(1024);
  put(map, "a", 9);
  put(map, "a", 4);
  EXPECT_EQ(map.find(as_bytes("a")), Offset{9});
}

TEST(OffsetMapTest, TakesNoMoreKeysThanItsLoadAllows) {
  const std::map<double, int> expected{{0.5, 50}, {0.9, 90}, {1.0, 99}};
  for (const auto& [load, keys] : expected) {
    auto map = map_of(OffsetMap::slot_bytes * 100, load);
    EXPECT_EQ(map.keys_max(), keys);
    for (int key = 0; key < keys; ++key) ASSERT_TRUE(put(map, std::to_string(key), key));
    EXPECT_FALSE(put(map, "one more", 1000));
    EXPECT_EQ(map.find(as_bytes("one more")), Offset{});
    EXPECT_TRUE(put(map, "3", 2000));  // it is there
    EXPECT_EQ(map.find(as_bytes("3")), Offset{2000});
  }
}

TEST(OffsetMapTest, IsNoLargerThanItsKeysNeed) {
  const auto map = map_of(1ULL << 40, 0.9, 900);  // a terabyte would not be given
  EXPECT_GE(map.keys_max(), 900);
  EXPECT_LE(map.keys_max(), 910);
  EXPECT_GE(map_of(1 << 20, 0.9, 0).keys_max(), 1);
  EXPECT_GE(map_of(0, 0.9, 10).keys_max(), 1);
}

}  // namespace
}  // namespace millrace::kernel
