#include "kernel/cli/log_check.h"

#include "log_fixture.h"

namespace millrace::kernel::cli {
namespace {

namespace fs = std::filesystem;

class LogCheckTest : public LogFixture {
 protected:
  std::string beside(std::string_view name) const { return partition() + "/" + std::string(name); }
  std::string index(std::string_view suffix) const {
    return partition() + "/" + filelog::offset_name({0}, suffix);
  }
};

// Of five releases of Kafka, in all formats: rolled, compacted, trimmed, with transactions.
TEST_F(LogCheckTest, NothingIsWrongWithWhatRealBrokersLeft) {
  std::size_t checked = 0;
  for (const auto& release : fs::directory_iterator(fs::path(MILLRACE_GOLDEN_DIR) / "segments")) {
    for (const auto& topic : fs::directory_iterator(release)) {
      const auto found = look_at_folder(files_, topic.path());
      ASSERT_TRUE(found) << found.error().detail;
      if (found->segments.empty()) continue;  // packed
      const auto report = check_partition(files_, {}, *found, {});
      ASSERT_TRUE(report) << report.error().detail;
      EXPECT_EQ(report->worst(), FindingKind::note)
          << topic.path() << ": " << wrong_in(*report).file << ": " << wrong_in(*report).what;
      EXPECT_GT(report->batches, 0u) << topic.path();
      ++checked;
    }
  }
  EXPECT_GT(checked, 90u);
}

TEST_F(LogCheckTest, ASoundLogSaysWhatItHolds) {
  write(log(0), batches(0, 4));
  write(log(12), batches(12, 2));
  checkpoint("recovery-point-offset-checkpoint", 18);
  const auto report = check();
  EXPECT_EQ(report.worst(), FindingKind::note);
  EXPECT_EQ(report.start, Offset{0});
  EXPECT_EQ(report.end, Offset{18});
  EXPECT_EQ(report.segments, 2u);
  EXPECT_EQ(report.batches, 6u);
  EXPECT_EQ(report.bytes, 6 * batch_bytes());
}

TEST_F(LogCheckTest, ATornTailIsToldFromDamageInTheMiddle) {
  write(log(0), batches(0, 3).substr(0, 3 * batch_bytes() - 7));
  auto finding = wrong_in(check());
  EXPECT_EQ(finding.kind, FindingKind::torn);
  EXPECT_EQ(finding.file, log(0));
  EXPECT_EQ(finding.position, 2 * batch_bytes());
  EXPECT_EQ(finding.bytes, batch_bytes() - 7);
  EXPECT_EQ(finding.from, Offset{6});

  write(log(0), batches(0, 3));
  flip(log(0), batch_bytes() + 70);
  finding = wrong_in(check());
  EXPECT_EQ(finding.kind, FindingKind::damaged);
  EXPECT_EQ(finding.position, batch_bytes());
  EXPECT_EQ(finding.from, Offset{3});
  EXPECT_EQ(finding.to, Offset{5});
}

// A crash may keep a file's length and lose bytes; what had reached the disk it does not touch.
TEST_F(LogCheckTest, ALastBatchOfWrongBytesIsTornBehindTheRecoveryPointAlone) {
  write(log(0), batches(0, 3));
  flip(log(0), 3 * batch_bytes() - 1);
  EXPECT_EQ(wrong_in(check()).kind, FindingKind::damaged);
  checkpoint("recovery-point-offset-checkpoint", 6);
  EXPECT_EQ(wrong_in(check()).kind, FindingKind::torn);
  checkpoint("recovery-point-offset-checkpoint", 7);
  EXPECT_EQ(wrong_in(check()).kind, FindingKind::damaged);
}

TEST_F(LogCheckTest, ATornSegmentWithOthersBehindItIsDamaged) {
  write(log(0), batches(0, 3).substr(0, 3 * batch_bytes() - 7));
  write(log(9), batches(9, 1));
  const auto finding = wrong_in(check());
  EXPECT_EQ(finding.kind, FindingKind::damaged);
  EXPECT_EQ(finding.from, Offset{6});
  EXPECT_EQ(finding.to, Offset{8});
}

TEST_F(LogCheckTest, ASegmentThatIsGoneIsMissed) {
  write(log(0), batches(0, 2));
  write(log(12), batches(12, 1));
  const auto finding = wrong_in(check());
  EXPECT_EQ(finding.kind, FindingKind::damaged);
  EXPECT_EQ(finding.position, 2 * batch_bytes());
  EXPECT_EQ(finding.from, Offset{6});
  EXPECT_EQ(finding.to, Offset{11});
}

TEST_F(LogCheckTest, GapsOfACompactedLogAreNoDamage) {
  write(log(0), batches(0, 1) + batches(9, 1));
  write(log(20), batches(20, 1));
  EXPECT_EQ(check().worst(), FindingKind::note);
}

TEST_F(LogCheckTest, DamageIsNoHoleThatExcusesASegmentThatIsGone) {
  write(log(0), batches(0, 3));
  flip(log(0), batch_bytes() + 70);
  write(log(18), batches(18, 1));
  const auto report = check();
  ASSERT_EQ(report.regions.size(), 2u);
  EXPECT_EQ(report.regions[0].region.from, Offset{3});
  EXPECT_EQ(report.regions[0].region.to, Offset{5});
  EXPECT_EQ(report.regions[1].region.from, Offset{9});
  EXPECT_EQ(report.regions[1].region.to, Offset{17});
}

TEST_F(LogCheckTest, BatchesThatWereSwappedMissTheirOffsets) {
  write(log(0), batches(0, 1) + batches(6, 1) + batches(3, 1) + batches(9, 1));
  write(log(18), batches(18, 1));
  const auto report = check();
  ASSERT_EQ(report.regions.size(), 3u) << "nor do they excuse a segment that is gone";
  const auto& hole = report.regions[0].region;
  EXPECT_EQ(hole.position, batch_bytes());
  EXPECT_EQ(hole.bytes(), 0u);
  EXPECT_EQ(hole.from, Offset{3});
  EXPECT_EQ(hole.to, Offset{5});
  EXPECT_EQ(report.regions[1].region.position, 2 * batch_bytes());
  EXPECT_EQ(report.regions[2].region.from, Offset{12});
}

TEST_F(LogCheckTest, GapsBelowWhereCompactionWasAreNoDamage) {
  write(log(0), batches(0, 1));
  write(log(9), "");
  write(log(20), batches(20, 1));
  EXPECT_EQ(check().worst(), FindingKind::damaged);
  checkpoint("cleaner-offset-checkpoint", 20);
  EXPECT_EQ(check().worst(), FindingKind::note);
  checkpoint("cleaner-offset-checkpoint", 9);
  EXPECT_EQ(check().worst(), FindingKind::damaged);
}

TEST_F(LogCheckTest, ACompactionThatIsAlmostThereIsNoDamage) {
  write(log(0), batches(0, 3));
  write(log(20), batches(20, 1));
  write(log(9) + ".swap", batches(9, 1));
  EXPECT_EQ(check().worst(), FindingKind::damaged);
  auto marker = log(20);
  marker.replace(marker.rfind(".log"), 4, ".end.swap");
  write(marker, "");
  EXPECT_EQ(check().worst(), FindingKind::note);
}

TEST_F(LogCheckTest, ALogThatEndsBelowItsRecoveryPointHasLostRecords) {
  write(log(0), batches(0, 2));
  checkpoint("recovery-point-offset-checkpoint", 9);
  const auto finding = wrong_in(check());
  EXPECT_EQ(finding.kind, FindingKind::damaged);
  EXPECT_EQ(finding.from, Offset{6});
  EXPECT_EQ(finding.to, Offset{8});
}

TEST_F(LogCheckTest, WhatABrokerIsWritingIsNotTorn) {
  write(log(0), batches(0, 3).substr(0, 3 * batch_bytes() - 7));
  const auto lock = files_.lock(data_ / ".lock");
  ASSERT_TRUE(lock) << lock.error().detail;
  const auto directory = place().directory;
  EXPECT_EQ(directory.holder, "process " + std::to_string(::getpid()));
  const auto report = check(directory);
  EXPECT_EQ(report.worst(), FindingKind::note);
  EXPECT_TRUE(report.being_written);
}

struct IndexCase {
  const char* name;
  filelog::OffsetIndex::Row row;
  filelog::TimeIndex::Row time;
  bool wrong;
};

TEST_F(LogCheckTest, IndexesAreComparedWithTheLog) {
  write(log(0), batches(0, 4));
  const auto second = static_cast<std::int32_t>(batch_bytes());
  for (const auto& [name, row, time, wrong] : {
           IndexCase{"as they are", {5, second}, {1001, 5}, false},
           IndexCase{"a time that is too late hides nothing", {5, second}, {5000, 5}, false},
           IndexCase{"a row into a batch", {5, second + 1}, {1001, 5}, true},
           IndexCase{"a row behind the end", {11, 4 * second}, {1001, 5}, true},
           IndexCase{"a row to a batch of later offsets", {2, second}, {1001, 5}, true},
           IndexCase{"a time that is too early", {5, second}, {1000, 5}, true},
       }) {
    filelog::OffsetIndex offsets;
    offsets.add(row);
    filelog::TimeIndex times;
    times.add(time);
    const auto text = [](const std::vector<std::byte>& bytes) {
      return std::string(as_text(bytes));
    };
    write(index(filelog::offset_index_suffix), text(offsets.encode(0)));
    write(index(filelog::time_index_suffix), text(times.encode(0)));
    const auto report = check();
    EXPECT_EQ(report.worst(), wrong ? FindingKind::index : FindingKind::note) << name;
  }
  write(index(filelog::offset_index_suffix), "12345");
  EXPECT_EQ(check().worst(), FindingKind::index);
  fs::remove(index(filelog::offset_index_suffix));
  fs::remove(index(filelog::time_index_suffix));
  EXPECT_EQ(check().worst(), FindingKind::note) << "a broker makes them again";
}

TEST_F(LogCheckTest, FilesBesideTheLogAreRead) {
  write(log(0), batches(0, 4));
  for (const auto& [name, sound, wrong] : {
           std::array{"leader-epoch-checkpoint", "0\n1\n3 0\n", "0\n2\n3 0\n"},
           std::array{"leader-epoch-checkpoint", "0\n1\n3 0\n", "0\n1\n4 0\n"},
           std::array{"partition.metadata", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n",
                      "version: 0\ntopic_id: AAAA\n"},
           std::array{"00000000000000000012.snapshot", "", "garbage"},
           std::array{"00000000000000000000.txnindex", "", "garbage"},
       }) {
    if (*sound != '\0') {
      write(beside(name), sound);
      EXPECT_EQ(check().worst(), FindingKind::note) << name;
    }
    write(beside(name), wrong);
    const auto finding = wrong_in(check());
    EXPECT_EQ(finding.kind, FindingKind::beside) << name;
    EXPECT_EQ(finding.file, beside(name));
    fs::remove(beside(name));
  }
}

TEST_F(LogCheckTest, PlacesAreDataDirectoriesAndFoldersOfPartitions) {
  write(log(0), batches(0, 1));
  fs::create_directories(data_ / "orders-1");
  fs::create_directories(data_ / "not a partition");
  EXPECT_EQ(place().folders, (std::vector{data_ / "orders-0", data_ / "orders-1"}));
  const auto one = find_places(files_, {data_ / "orders-0/"});
  ASSERT_TRUE(one) << one.error().detail;
  EXPECT_EQ(one->front().directory.path, data_.path());
  EXPECT_EQ(one->front().folders, std::vector{data_ / "orders-0"});
  fs::create_directories(data_ / "disk-1/payments-0");
  const auto named_like_one = find_places(files_, {data_ / "disk-1"});
  ASSERT_TRUE(named_like_one) << named_like_one.error().detail;
  EXPECT_EQ(named_like_one->front().folders, std::vector{data_ / "disk-1/payments-0"});
  for (const auto& wrong : {data_ / "not a partition", data_ / "missing", log(0)}) {
    EXPECT_FALSE(find_places(files_, {wrong})) << wrong;
  }
}

}  // namespace
}  // namespace millrace::kernel::cli
