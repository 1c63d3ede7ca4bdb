#include "kernel/cli/log_repair.h"

#include "failing_files.h"
#include "log_fixture.h"

namespace millrace::kernel::cli {
namespace {

namespace fs = std::filesystem;

class LogRepairTest : public LogFixture {
 protected:
  std::string aside(std::int64_t offset) const {
    return partition() + "/" + filelog::offset_name({offset}, ".damaged");
  }
  RepairPlan plan(bool skip_damaged) { return plan_repair(folder(), check(), skip_damaged); }
  Result<> repair(FileSystem& files, bool skip_damaged) {
    return carry_out(files, place().directory, folder(), plan(skip_damaged));
  }
  void repair(bool skip_damaged) {
    const auto done = repair(files_, skip_damaged);
    ASSERT_TRUE(done) << done.error().detail;
  }
};

TEST_F(LogRepairTest, OfASoundLogNothingIsToBeDone) {
  write(log(0), batches(0, 3));
  EXPECT_TRUE(plan(true).steps.empty());
  EXPECT_TRUE(plan(true).left.empty());
}

TEST_F(LogRepairTest, ATornTailIsCutAndKept) {
  const auto sound = batches(0, 2);
  const auto tail = batches(6, 1).substr(0, 50);
  write(log(0), sound + tail);
  write(partition() + "/00000000000000000000.index", "12345678");
  const auto planned = plan(false);
  ASSERT_EQ(planned.steps.size(), 2u);
  EXPECT_EQ(planned.steps[0].action, RepairAction::cut);
  EXPECT_EQ(planned.steps[1].action, RepairAction::remove_indexes);
  EXPECT_EQ(content(log(0)), sound + tail) << "planning changes nothing";

  repair(false);
  EXPECT_EQ(content(log(0)), sound);
  EXPECT_EQ(content(aside(6)), tail);
  EXPECT_FALSE(fs::exists(partition() + "/00000000000000000000.index"));
  EXPECT_EQ(check().worst(), FindingKind::note);
  EXPECT_EQ(check().end, Offset{6});
}

TEST_F(LogRepairTest, ZerosAreCutAndNotKept) {
  write(log(0), batches(0, 2) + std::string(10'000, '\0'));
  repair(false);
  EXPECT_EQ(content(log(0)), batches(0, 2));
  EXPECT_FALSE(fs::exists(aside(6)));
}

TEST_F(LogRepairTest, DamageIsLeftUnlessAskedFor) {
  write(log(0), batches(0, 3));
  flip(log(0), batch_bytes() + 70);
  const auto before = content(log(0));
  const auto planned = plan(false);
  EXPECT_TRUE(planned.steps.empty());
  ASSERT_EQ(planned.left.size(), 1u);
  EXPECT_NE(planned.left.front().find("--skip-damaged"), std::string::npos);
  repair(false);
  EXPECT_EQ(content(log(0)), before);
}

TEST_F(LogRepairTest, DamagedBytesMoveAsideAndOffsetsStay) {
  write(log(0), batches(0, 6));
  flip(log(0), batch_bytes() + 70);
  flip(log(0), 3 * batch_bytes() + 5);
  const auto before = content(log(0));
  repair(true);
  const auto report = check();
  EXPECT_EQ(report.worst(), FindingKind::note) << wrong_in(report).what;
  EXPECT_EQ(report.end, Offset{18});
  EXPECT_EQ(report.batches, 6u) << "four and two empty ones";
  EXPECT_EQ(content(aside(3)), before.substr(batch_bytes(), batch_bytes()));
  EXPECT_EQ(content(aside(9)), before.substr(3 * batch_bytes(), batch_bytes()));
  const auto after = content(log(0));
  EXPECT_EQ(after.size(), 4 * batch_bytes() + 2 * batch_header_bytes);
  EXPECT_TRUE(after.starts_with(batches(0, 1)));
  EXPECT_TRUE(after.ends_with(before.substr(4 * batch_bytes())));
  const auto empty = read_batch_header(as_bytes(std::string_view(after).substr(batch_bytes())));
  ASSERT_TRUE(empty) << empty.error().detail;
  EXPECT_EQ(empty->record_count, 0);
  EXPECT_EQ(empty->base_offset, Offset{3});
  EXPECT_EQ(empty->last_offset(), Offset{5});
  EXPECT_EQ(empty->partition_leader_epoch, Epoch{3});
}

TEST_F(LogRepairTest, TheEndOfALogStaysWhereItsLastBatchIsDamaged) {
  write(log(0), batches(0, 3));
  flip(log(0), 2 * batch_bytes() + 70);
  repair(true);
  EXPECT_EQ(check().end, Offset{9});
  EXPECT_EQ(check().worst(), FindingKind::note);
}

TEST_F(LogRepairTest, TheOffsetsOfASegmentThatIsGoneStayEmpty) {
  write(log(0), batches(0, 2));
  write(log(12), batches(12, 1));
  repair(true);
  const auto report = check();
  EXPECT_EQ(report.worst(), FindingKind::note) << wrong_in(report).what;
  EXPECT_EQ(content(log(0)).size(), 2 * batch_bytes() + batch_header_bytes);
}

TEST_F(LogRepairTest, BatchesThatWereSwappedLeaveAnEmptyOneInTheirPlace) {
  write(log(0), batches(0, 1) + batches(9, 1) + batches(3, 2) + batches(12, 1));
  repair(true);
  const auto report = check();
  EXPECT_EQ(report.worst(), FindingKind::note) << wrong_in(report).what;
  EXPECT_EQ(report.batches, 5u) << "three and two empty ones";
  EXPECT_EQ(report.end, Offset{15});
  EXPECT_EQ(content(aside(12)), batches(3, 2));
}

TEST_F(LogRepairTest, TheRecoveryPointIsLoweredWithTheEnd) {
  write(log(0), batches(0, 2) + batches(6, 1).substr(0, 50));
  checkpoint("recovery-point-offset-checkpoint", 6);
  repair(false);
  EXPECT_EQ(content(data_ / "recovery-point-offset-checkpoint"), "0\n1\norders 0 6\n");
  // What had reached the disk was acknowledged: its offsets are not given again.
  write(log(0), batches(0, 2) + batches(6, 1).substr(0, 50));
  checkpoint("recovery-point-offset-checkpoint", 9);
  repair(false);
  EXPECT_EQ(check().end, Offset{9});
  EXPECT_EQ(check().worst(), FindingKind::note);
}

TEST_F(LogRepairTest, WhatABrokerMakesAgainIsSetAside) {
  write(log(0), batches(0, 2));
  const auto snapshot = partition() + "/00000000000000000006.snapshot";
  write(snapshot, "garbage");
  write(partition() + "/partition.metadata", "garbage");
  const auto planned = plan(false);
  EXPECT_EQ(planned.left.size(), 1u) << "nobody else knows the topic's id";
  repair(false);
  EXPECT_FALSE(fs::exists(snapshot));
  EXPECT_EQ(content(snapshot + ".damaged"), "garbage");
}

TEST_F(LogRepairTest, ASegmentThatIsEmptyCostsItsOffsetsAlone) {
  const auto last = batches(12, 2);
  write(log(0), batches(0, 2));
  write(log(6), "");
  write(log(12), last);
  checkpoint("recovery-point-offset-checkpoint", 18);
  repair(true);
  const auto report = check();
  EXPECT_EQ(report.worst(), FindingKind::note) << wrong_in(report).what;
  EXPECT_EQ(report.end, Offset{18});
  EXPECT_EQ(content(log(12)), last);
}

TEST_F(LogRepairTest, WhatIsOnlyCalledAsASegmentIsSetAside) {
  const auto whole = batches(0, 4);
  const std::string strangers[] = {"", "garbage", std::string(500, '\0'), batches(0, 2)};
  for (const auto& stranger : strangers) {
    write(log(0), whole);
    write(log(6), stranger);
    write(log(12), batches(12, 2));
    EXPECT_EQ(check().worst(), FindingKind::beside);
    repair(false);
    const auto report = check();
    EXPECT_EQ(report.worst(), FindingKind::note) << wrong_in(report).what;
    EXPECT_EQ(report.batches, 6u);
    EXPECT_EQ(content(log(0)), whole);
    EXPECT_FALSE(fs::exists(log(6)));
  }
  EXPECT_EQ(content(log(6) + ".damaged"), strangers[0]);
  EXPECT_EQ(content(log(6) + ".damaged-4"), strangers[3]) << "what was kept before stays";
}

TEST_F(LogRepairTest, OffsetsThatNoBatchCanStandForAreLeft) {
  constexpr std::int64_t far = 10'000'000'000;
  write(log(0), batches(0, 2));
  write(log(far), batches(far, 1));
  const auto planned = plan(true);
  ASSERT_EQ(planned.left.size(), 1u);
  EXPECT_NE(planned.left.front().find("more than a log can skip"), std::string::npos);
  for (const auto& step : planned.steps) EXPECT_FALSE(step.is_of_log());
}

TEST_F(LogRepairTest, FoldersInThePlacesOfFilesAreSetAside) {
  auto damaged = batches(0, 4);
  damaged[batch_bytes() + 70] ^= 1;
  write(log(0), damaged);
  for (const char* name : {"00000000000000000000.index", "00000000000000000012.snapshot",
                           "00000000000000000000.log.tmp", "leader-epoch-checkpoint"}) {
    fs::create_directories(partition() + "/" + name + "/with more in it");
  }
  fs::create_directories(partition() + "/somebody's own");
  repair(true);
  const auto report = check();
  EXPECT_EQ(report.worst(), FindingKind::note) << wrong_in(report).what;
  EXPECT_EQ(report.batches, 4u) << "three and an empty one";
  EXPECT_TRUE(fs::exists(partition() + "/00000000000000000000.index.damaged/with more in it"));
  EXPECT_TRUE(fs::exists(partition() + "/somebody's own"));
}

TEST_F(LogRepairTest, ACheckpointThatCannotBeReadIsSetAside) {
  write(log(0), batches(0, 2));
  const auto file = data_ / "recovery-point-offset-checkpoint";
  write(file, "garbage");
  const auto directory = place().directory;
  const auto planned = plan_repair(directory);
  ASSERT_EQ(planned.steps.size(), 1u);
  EXPECT_TRUE(fs::exists(file)) << "planning changes nothing";
  ASSERT_TRUE(carry_out(files_, directory, planned));
  EXPECT_EQ(content(file + ".damaged"), "garbage");
  EXPECT_TRUE(place().directory.unreadable.empty());
}

TEST_F(LogRepairTest, AnUnfinishedCompactionIsABrokersWork) {
  write(log(0), batches(0, 2) + "torn");
  write(log(0) + ".swap", batches(0, 1));
  const auto planned = plan(true);
  EXPECT_TRUE(planned.steps.empty());
  EXPECT_EQ(planned.left.size(), 1u);
}

// Killed in front of every change that it makes, and started again.
TEST_F(LogRepairTest, ARepairThatIsKilledIsFinishedByTheNext) {
  auto damaged = batches(0, 5);
  damaged[batch_bytes() + 70] ^= 1;
  damaged[3 * batch_bytes() + 70] ^= 1;
  damaged += batches(15, 1).substr(0, 60);
  int kills = 0;
  for (bool killed = true; killed; ++kills) {
    fs::remove_all(partition());
    fs::create_directories(partition());
    write(log(0), damaged);
    write(partition() + "/00000000000000000000.index", "12345678");
    FailingFiles dying(files_);
    dying.fail_after(kills);
    killed = !repair(dying, true);
    SCOPED_TRACE(kills);
    // At any time every sound batch is in the log.
    const auto left = check();
    EXPECT_GE(left.batches, 3u);
    repair(true);
    const auto report = check();
    EXPECT_EQ(report.worst(), FindingKind::note) << wrong_in(report).what;
    EXPECT_EQ(report.end, Offset{15});
    EXPECT_EQ(content(aside(3)), damaged.substr(batch_bytes(), batch_bytes()));
    EXPECT_EQ(content(aside(9)), damaged.substr(3 * batch_bytes(), batch_bytes()));
    EXPECT_EQ(content(aside(15)), damaged.substr(5 * batch_bytes()));
    EXPECT_FALSE(fs::exists(aside(3) + "-2")) << "kept once";
  }
  EXPECT_GT(kills, 10);
}

// What was acknowledged has them.
TEST_F(LogRepairTest, ARepairOfTheEndThatIsKilledKeepsTheOffsets) {
  auto damaged = batches(0, 3);
  damaged[2 * batch_bytes() + 70] ^= 1;
  int kills = 0;
  for (bool killed = true; killed; ++kills) {
    fs::remove_all(partition());
    fs::create_directories(partition());
    write(log(0), damaged);
    FailingFiles dying(files_);
    dying.fail_after(kills);
    killed = !repair(dying, true);
    SCOPED_TRACE(kills);
    EXPECT_GE(check().batches, 2u);
    repair(true);
    const auto report = check();
    EXPECT_EQ(report.worst(), FindingKind::note) << wrong_in(report).what;
    EXPECT_EQ(report.end, Offset{9});
    EXPECT_EQ(content(aside(6)), damaged.substr(2 * batch_bytes()));
  }
  EXPECT_GT(kills, 5);
}

}  // namespace
}  // namespace millrace::kernel::cli
