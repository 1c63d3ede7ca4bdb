// State and timers against a plain map: what is kept, undone, committed and counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "kernel/streams/keyed_state.h"

namespace millrace::kernel {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Model = std::map<std::string, std::string>;
using Changes = std::map<std::string, std::optional<std::string>>;

constexpr std::int64_t plenty = 1 << 30;

std::string text(Bytes bytes) { return std::string(as_text(bytes)); }

Model content(const KeyedStore& store) {
  Model all;
  store.for_each([&](Bytes key, Bytes value) {
    all.emplace(text(key), text(value));
    return true;
  });
  return all;
}

Changes changes_of(KeyedStore& store) {
  Changes changes;
  store.take_changes([&](Bytes key, std::optional<Bytes> value) {
    EXPECT_TRUE(
        changes.emplace(text(key), value ? std::optional(text(*value)) : std::nullopt).second)
        << "each key once";
  });
  return changes;
}

TEST(KeyedStoreTest, ShowsWhatACallHasDoneAndTakesItBack) {
  StreamMemory memory(plenty);
  KeyedStore store(memory);
  store.put(as_bytes("a"), as_bytes("1"));
  store.keep();
  store.put(as_bytes("a"), as_bytes("2"));
  store.put(as_bytes("b"), as_bytes("new"));
  store.erase(as_bytes("a"));
  EXPECT_FALSE(store.get(as_bytes("a")));
  EXPECT_EQ(text(store.get(as_bytes("b")).value()), "new");
  EXPECT_EQ(store.size(), 1);
  store.undo();
  EXPECT_EQ(text(store.get(as_bytes("a")).value()), "1");
  EXPECT_FALSE(store.get(as_bytes("b")));
  EXPECT_EQ(store.size(), 1);
}

TEST(KeyedStoreTest, ChangesAreTheLastOfEachKeySinceTheLastCommit) {
  StreamMemory memory(plenty);
  KeyedStore store(memory);
  for (const auto* value : {"1", "2", "3"}) {
    store.put(as_bytes("a"), as_bytes(value));
    store.keep();
  }
  store.put(as_bytes("b"), as_bytes("x"));
  store.erase(as_bytes("b"));
  store.keep();
  EXPECT_THAT(changes_of(store), ElementsAre(Pair("a", "3"), Pair("b", std::nullopt)));
  EXPECT_THAT(changes_of(store), IsEmpty());
  store.put(as_bytes("a"), as_bytes("4"));
  store.undo();
  EXPECT_THAT(changes_of(store), IsEmpty()) << "what was undone is no change";
}

TEST(KeyedStoreTest, WhatDoesNotFitIsRefusedAndLeavesNoTrace) {
  StreamMemory memory(1000);
  KeyedStore store(memory);
  store.put(as_bytes("a"), as_bytes("small"));
  store.keep();
  const auto used = memory.bytes_used();
  const std::string large(2000, 'x');
  EXPECT_THROW(store.put(as_bytes("b"), as_bytes(large)), std::length_error);
  EXPECT_THROW(store.put(as_bytes("a"), as_bytes(large)), std::length_error);
  EXPECT_TRUE(store.refused());
  store.undo();
  EXPECT_THAT(content(store), ElementsAre(Pair("a", "small")));
  EXPECT_EQ(memory.bytes_used(), used);
}

TEST(KeyedStoreTest, WhatIsRestoredIsStateAndNoChange) {
  StreamMemory memory(plenty);
  KeyedStore store(memory);
  store.restore(as_bytes("a"), as_bytes("1"));
  store.restore(as_bytes("b"), as_bytes("2"));
  store.restore(as_bytes("a"), as_bytes("longer"));
  store.restore(as_bytes("b"), std::nullopt);
  store.restore(as_bytes("c"), std::nullopt);
  EXPECT_THAT(content(store), ElementsAre(Pair("a", "longer")));
  EXPECT_EQ(store.size(), 1);
  EXPECT_THAT(changes_of(store), IsEmpty());
  store.erase(as_bytes("a"));
  store.keep();
  EXPECT_EQ(memory.bytes_used(), 0);
  EXPECT_THAT(changes_of(store), ElementsAre(Pair("a", std::nullopt)));
}

TEST(KeyedStoreTest, MemoryIsGivenBack) {
  StreamMemory memory(plenty);
  {
    KeyedStore store(memory);
    for (int i = 0; i < 100; ++i) store.put(as_bytes(std::to_string(i)), as_bytes("value"));
    store.keep();
    EXPECT_GT(memory.bytes_used(), 100 * 5);
    for (int i = 0; i < 100; ++i) store.erase(as_bytes(std::to_string(i)));
    store.keep();
    EXPECT_EQ(memory.bytes_used(), 0);
    store.put(as_bytes("a"), as_bytes("b"));
  }
  EXPECT_EQ(memory.bytes_used(), 0);
}

// Random records, of which every fifth fails; now and then a commit.
TEST(KeyedStoreTest, AgreesWithAMapWhateverHappens) {
  std::mt19937 chance(7);
  StreamMemory memory(plenty);
  KeyedStore store(memory);
  Model kept;
  Model committed;
  for (int record = 0; record < 5000; ++record) {
    auto now = kept;
    for (auto calls = chance() % 5; calls > 0; --calls) {
      const auto key = std::to_string(chance() % 20);
      if (chance() % 3 == 0) {
        store.erase(as_bytes(key));
        now.erase(key);
      } else {
        const auto value = std::string(chance() % 40, static_cast<char>('a' + chance() % 26));
        store.put(as_bytes(key), as_bytes(value));
        now[key] = value;
      }
      ASSERT_EQ(content(store), now);
    }
    if (chance() % 5 == 0) {
      store.undo();
    } else {
      store.keep();
      kept = now;
    }
    ASSERT_EQ(content(store), kept);
    ASSERT_EQ(store.size(), kept.size());
    if (chance() % 10 == 0) {
      for (const auto& [key, value] : changes_of(store)) {
        if (value) {
          committed[key] = *value;
        } else {
          committed.erase(key);
        }
      }
      ASSERT_EQ(committed, kept) << "the changes make of the last commit what is there now";
    }
  }
  for (const auto& [key, value] : kept) store.erase(as_bytes(key));
  store.keep();
  EXPECT_EQ(memory.bytes_used(), 0);
}

TEST(StepTimersTest, AreDueInTheOrderOfTimeOnceTheyAreKept) {
  StreamMemory memory(plenty);
  StepTimers timers(memory);
  timers.set(as_bytes("late"), {30});
  timers.set(as_bytes("early"), {10});
  timers.set(as_bytes("moved"), {5});
  timers.keep();
  timers.set(as_bytes("moved"), {20});
  timers.keep();
  EXPECT_THAT(timers.due({20}), ElementsAre(Pair(10, "early"), Pair(20, "moved")));
  EXPECT_TRUE(timers.take("early", 10));
  EXPECT_FALSE(timers.take("moved", 5)) << "it is set for another time";
  timers.keep();
  EXPECT_THAT(timers.due({20}), ElementsAre(Pair(20, "moved")));
  timers.cancel(as_bytes("moved"));
  timers.keep();
  EXPECT_THAT(timers.due({100}), ElementsAre(Pair(30, "late")));
}

TEST(StepTimersTest, WhatACallHasSetGoesWithIt) {
  StreamMemory memory(plenty);
  StepTimers timers(memory);
  timers.set(as_bytes("a"), {10});
  timers.keep();
  EXPECT_TRUE(timers.take("a", 10));
  timers.set(as_bytes("b"), {11});
  timers.undo();
  EXPECT_THAT(timers.due({100}), ElementsAre(Pair(10, "a")));
}

}  // namespace
}  // namespace millrace::kernel
