#include "plugins/transport/kafka/answer_memory.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kafka_transport {
namespace {

using ::testing::ElementsAre;

class AnswerMemoryTest : public ::testing::Test {
 protected:
  std::vector<bool> changes;
  AnswerMemory memory{800, [this](bool scarce) { changes.push_back(scarce); }};
  AnswerMemory::Share one{memory};
  AnswerMemory::Share other{memory};
};

TEST_F(AnswerMemoryTest, AShareHasRoomUpToAnEighth) {
  EXPECT_TRUE(one.has_room());
  one.set(99);
  EXPECT_TRUE(one.has_room());
  one.set(100);
  EXPECT_FALSE(one.has_room());
  EXPECT_TRUE(other.has_room());
}

TEST_F(AnswerMemoryTest, WhereItIsScarceOnlyWhoHoldsNothingGoesOn) {
  one.set(801);
  other.set(1);
  EXPECT_FALSE(other.has_room());
  other.set(0);
  EXPECT_TRUE(other.has_room());
  EXPECT_THAT(changes, ElementsAre(true));
}

TEST_F(AnswerMemoryTest, WhereItIsExhaustedNobodyGoesOn) {
  one.set(1600);
  EXPECT_FALSE(other.has_room());
}

TEST_F(AnswerMemoryTest, IsScarceUntilHalfOfItIsFree) {
  one.set(801);
  one.set(401);
  EXPECT_TRUE(memory.scarce());
  one.set(400);
  EXPECT_FALSE(memory.scarce());
  EXPECT_THAT(changes, ElementsAre(true, false));
}

TEST_F(AnswerMemoryTest, AShareThatEndsGivesItsBytesBack) {
  {
    AnswerMemory::Share third(memory);
    third.set(900);
  }
  EXPECT_EQ(memory.bytes(), 0);
  EXPECT_THAT(changes, ElementsAre(true, false));
}

}  // namespace
}  // namespace millrace::kafka_transport
