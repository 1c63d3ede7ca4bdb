#include "kernel/cli/log_walk.h"

#include "log_fixture.h"

namespace millrace::kernel::cli {
namespace {

struct Walked {
  std::vector<SoundBatch> sound;
  std::vector<BadRegion> bad;
};

class LogWalkTest : public LogFixture {
 protected:
  Walked walk(const std::string& bytes, Offset next = {}) {
    write(log(0), bytes);
    Walked walked;
    const auto file = files_.open(log(0), OpenMode::read);
    EXPECT_TRUE(file) << file.error().detail;
    SegmentWalker walker(**file, bytes.size(), {0}, next);
    while (true) {
      auto item = walker.next();
      if (!item) ADD_FAILURE() << item.error().detail;
      if (!item || !*item) return walked;
      if (auto* batch = std::get_if<SoundBatch>(&**item)) {
        walked.sound.push_back(*batch);
      } else {
        walked.bad.push_back(std::get<BadRegion>(**item));
      }
    }
  }
};

TEST_F(LogWalkTest, FindsEveryBatchOfASoundLog) {
  const auto walked = walk(batches(0, 4));
  EXPECT_TRUE(walked.bad.empty());
  ASSERT_EQ(walked.sound.size(), 4u);
  EXPECT_EQ(walked.sound.back().entry.last, Offset{11});
  EXPECT_EQ(walked.sound.back().header->partition_leader_epoch, Epoch{3});
}

// Whatever byte of a batch in the middle is another one, just that batch is lost.
TEST_F(LogWalkTest, EveryByteThatIsFlippedCostsItsBatchAlone) {
  const auto sound = batches(0, 5);
  const auto bytes = batch_bytes();
  for (const unsigned char bits : {0x01, 0x80, 0xff}) {
    for (std::size_t at = 2 * bytes; at < 3 * bytes; ++at) {
      auto damaged = sound;
      damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ bits);
      const auto walked = walk(damaged);
      SCOPED_TRACE("byte " + std::to_string(at - 2 * bytes) + " of the batch, bits " +
                   std::to_string(bits));
      ASSERT_EQ(walked.bad.size(), 1u);
      const auto& region = walked.bad.front();
      EXPECT_EQ(region.position, 2 * bytes) << region.what;
      EXPECT_EQ(region.end, 3 * bytes) << region.what;
      EXPECT_EQ(region.from, Offset{6});
      EXPECT_EQ(region.to, Offset{8});
      EXPECT_FALSE(region.to_file_end);
      EXPECT_EQ(walked.sound.size(), 4u);
    }
  }
}

TEST_F(LogWalkTest, EveryTailThatIsTornIsOne) {
  const auto sound = batches(0, 3);
  const auto bytes = batch_bytes();
  for (std::size_t size = 2 * bytes + 1; size < 3 * bytes; ++size) {
    const auto walked = walk(sound.substr(0, size));
    SCOPED_TRACE(size);
    EXPECT_EQ(walked.sound.size(), 2u);
    ASSERT_EQ(walked.bad.size(), 1u);
    EXPECT_TRUE(walked.bad.front().torn);
    EXPECT_TRUE(walked.bad.front().to_file_end);
    EXPECT_EQ(walked.bad.front().position, 2 * bytes);
    EXPECT_EQ(walked.bad.front().from, Offset{6});
    EXPECT_LT(walked.bad.front().to, Offset{0});
  }
}

TEST_F(LogWalkTest, ZerosAtTheEndAreTorn) {
  const auto walked = walk(batches(0, 2) + std::string(5000, '\0'));
  ASSERT_EQ(walked.bad.size(), 1u);
  EXPECT_TRUE(walked.bad.front().torn);
  EXPECT_TRUE(walked.bad.front().zeros);
  EXPECT_EQ(walked.bad.front().bytes(), 5000u);
}

TEST_F(LogWalkTest, ALastBatchOfWrongBytesTellsItsOffsets) {
  auto damaged = batches(0, 3);
  damaged.back() ^= 1;
  const auto walked = walk(damaged);
  ASSERT_EQ(walked.bad.size(), 1u);
  EXPECT_FALSE(walked.bad.front().torn);
  EXPECT_EQ(walked.bad.front().from, Offset{6});
  EXPECT_EQ(walked.bad.front().to, Offset{8});
}

TEST_F(LogWalkTest, GarbageBetweenBatchesCostsNoOffset) {
  const auto first = batches(0, 2);
  const auto walked = walk(first + std::string(3'000'000, 'x') + batches(6, 2));
  EXPECT_EQ(walked.sound.size(), 4u);
  ASSERT_EQ(walked.bad.size(), 1u);
  EXPECT_EQ(walked.bad.front().bytes(), 3'000'000u);
  EXPECT_EQ(walked.bad.front().to, Offset{5}) << "nothing is missing between 5 and 6";
}

TEST_F(LogWalkTest, SeveralRegionsAreTold) {
  auto damaged = batches(0, 9);
  for (const std::size_t batch : {0, 3, 4, 8}) damaged[batch * batch_bytes() + 70] ^= 1;
  const auto walked = walk(damaged);
  EXPECT_EQ(walked.sound.size(), 5u);
  ASSERT_EQ(walked.bad.size(), 3u) << "two in a row are one";
  EXPECT_EQ(walked.bad[0].from, Offset{0});
  EXPECT_EQ(walked.bad[1].from, Offset{9});
  EXPECT_EQ(walked.bad[1].to, Offset{14});
  EXPECT_TRUE(walked.bad[2].to_file_end);
}

TEST_F(LogWalkTest, DamageInFrontOfABatchOfWrongNumbersIsOneRegionWithIt) {
  auto damaged = batches(3, 1);
  damaged.back() ^= 1;
  const auto walked = walk(batches(0, 1) + damaged + batches(12, 1) + batches(6, 2));
  ASSERT_EQ(walked.bad.size(), 1u);
  EXPECT_EQ(walked.bad.front().position, batch_bytes());
  EXPECT_EQ(walked.bad.front().end, 3 * batch_bytes());
  EXPECT_EQ(walked.bad.front().from, Offset{3});
  EXPECT_EQ(walked.bad.front().to, Offset{5});
  EXPECT_EQ(walked.sound.size(), 3u);
}

TEST_F(LogWalkTest, ABatchBehindNewerOnesTellsWhereItsOffsetsAreMissing) {
  const auto walked = walk(batches(0, 1) + batches(9, 1) + batches(3, 2) + batches(12, 1));
  EXPECT_EQ(walked.sound.size(), 3u);
  ASSERT_EQ(walked.bad.size(), 1u);
  const auto& displaced = walked.bad.front().displaced;
  ASSERT_EQ(displaced.size(), 2u);
  EXPECT_EQ(displaced[0].hole, batch_bytes());
  EXPECT_EQ(displaced[0].from, Offset{3});
  EXPECT_FALSE(displaced[0].fills);
  EXPECT_EQ(displaced[1].to, Offset{8});
  EXPECT_TRUE(displaced[1].fills);
}

TEST_F(LogWalkTest, ABatchThatStandsTwiceMissesNothing) {
  const auto walked = walk(batches(0, 3) + batches(3, 1) + batches(9, 1));
  ASSERT_EQ(walked.bad.size(), 1u);
  EXPECT_TRUE(walked.bad.front().displaced.empty());
  EXPECT_LT(walked.bad.front().to, walked.bad.front().from);
}

TEST_F(LogWalkTest, OffsetsAreToldOnceWhereBatchesStandTheOtherWayRound) {
  const auto walked =
      walk(batches(0, 1) + batches(9, 1) + batches(6, 1) + batches(3, 1) + batches(12, 1));
  std::int64_t lost = 0;
  for (const auto& region : walked.bad) {
    EXPECT_TRUE(region.displaced.empty());
    lost += region.to - region.from + 1;
  }
  EXPECT_EQ(lost, 6) << "of the one in the middle alone all is there";
}

TEST_F(LogWalkTest, ABatchThatReachesIntoTheNextSegmentIsWrong) {
  const auto walked = walk(batches(0, 3), {8});
  EXPECT_EQ(walked.sound.size(), 2u);
  ASSERT_EQ(walked.bad.size(), 1u);
  EXPECT_NE(walked.bad.front().what.find("next segment"), std::string::npos);
}

TEST_F(LogWalkTest, OldFormatsAreWalkedToo) {
  const std::string golden = MILLRACE_GOLDEN_DIR;
  const auto sound = content(golden + "/segments/kafka-0.10.2.2/v1-none-java010/" +
                             filelog::offset_name({0}, filelog::log_suffix));
  const auto whole = walk(sound);
  EXPECT_TRUE(whole.bad.empty());
  ASSERT_GT(whole.sound.size(), 10u);
  EXPECT_EQ(whole.sound.front().entry.magic, 1);
  const auto& lost = whole.sound[5].entry;
  for (auto at = lost.position; at < lost.end(); ++at) {
    auto damaged = sound;
    damaged[at] ^= 0x55;
    const auto walked = walk(damaged);
    SCOPED_TRACE(at - lost.position);
    ASSERT_EQ(walked.bad.size(), 1u);
    EXPECT_EQ(walked.bad.front().position, lost.position);
    EXPECT_EQ(walked.bad.front().end, lost.end());
    EXPECT_EQ(walked.sound.size(), whole.sound.size() - 1);
  }
}

}  // namespace
}  // namespace millrace::kernel::cli
