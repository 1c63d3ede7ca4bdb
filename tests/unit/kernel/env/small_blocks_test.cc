#include "kernel/env/small_blocks.h"

#include <cstdlib>
#include <set>

#include <gtest/gtest.h>
#include <malloc.h>

namespace millrace::kernel {
namespace {

/// Of which some are given back at the end.
class SmallBlocksTest : public testing::Test {
 protected:
  SmallBlocksTest() { blocks_.begin(); }
  ~SmallBlocksTest() override { blocks_.end(); }

  static void* fresh(std::size_t bytes) { return std::malloc(SmallBlocks::room_for(bytes)); }

  SmallBlocks blocks_;
};

TEST_F(SmallBlocksTest, ABlockHasRoomForWhatIsAskedAndMallocWastesNothingForIt) {
  for (std::size_t bytes = 0; bytes <= SmallBlocks::bytes_max; ++bytes) {
    ASSERT_GE(SmallBlocks::room_for(bytes), bytes);
    void* block = fresh(bytes);
    ASSERT_LE(malloc_usable_size(block) - SmallBlocks::room_for(bytes), 16U) << bytes;
    std::free(block);
  }
  EXPECT_EQ(SmallBlocks::room_for(SmallBlocks::bytes_max), SmallBlocks::bytes_max);
}

TEST_F(SmallBlocksTest, WhatWasGivenBackIsTakenAgainByWhoNeedsTheSameRoom) {
  EXPECT_EQ(blocks_.take(30), nullptr);
  void* block = fresh(30);
  ASSERT_TRUE(blocks_.keep(block, 30));
  EXPECT_EQ(blocks_.take(24), nullptr);
  EXPECT_EQ(blocks_.take(41), nullptr);
  EXPECT_EQ(blocks_.take(40), block);
  EXPECT_EQ(blocks_.take(40), nullptr);
  ASSERT_TRUE(blocks_.keep(block, 40));
}

TEST_F(SmallBlocksTest, EveryBlockThatIsKeptComesBackOnce) {
  std::set<void*> kept;
  for (int count = 0; count < 8; ++count) kept.insert(fresh(SmallBlocks::bytes_max));
  for (void* block : kept) ASSERT_TRUE(blocks_.keep(block, SmallBlocks::bytes_max));
  std::set<void*> taken;
  while (void* block = blocks_.take(SmallBlocks::bytes_max)) taken.insert(block);
  EXPECT_EQ(taken, kept);
  for (void* block : taken) std::free(block);
}

TEST_F(SmallBlocksTest, KeepsSoMuchOfOneSizeAndHasRoomAgainOnceSomeIsTaken) {
  std::size_t kept = 0;
  void* refused = nullptr;
  for (void* block = fresh(1000); !refused; block = fresh(1000)) {
    if (blocks_.keep(block, 1000)) {
      ++kept;
    } else {
      refused = block;
      break;
    }
  }
  EXPECT_GE(kept, 8U);
  EXPECT_LE(kept * 1000, SmallBlocks::kept_bytes_max);
  std::free(blocks_.take(1000));
  EXPECT_TRUE(blocks_.keep(refused, 1000));
}

TEST_F(SmallBlocksTest, KeepsNothingBeforeItsBeginAndAfterItsEnd) {
  SmallBlocks early;
  void* block = fresh(100);
  EXPECT_FALSE(early.keep(block, 100));
  early.begin();
  EXPECT_TRUE(early.keep(block, 100));
  early.end();
  EXPECT_EQ(early.take(100), nullptr);
  void* late = fresh(100);
  EXPECT_FALSE(early.keep(late, 100));
  std::free(late);
}

}  // namespace
}  // namespace millrace::kernel
