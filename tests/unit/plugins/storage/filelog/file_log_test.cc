// What the contract leaves open: when segments roll, what a full or a broken disk does.
#include "filelog_subject.h"

#include <millrace/filelog/names.h>

namespace millrace::filelog {
namespace {

using testing::append_batch;
using testing::everything_from;
using testing::joined;
using testing::make_batch;
using testing::parts_of;
using testing::read_text;

class FileLogTest : public ::testing::Test {
 protected:
  void SetUp() override { subject_.lock(); }
  void TearDown() override {
    if (log_) subject_.close(log_);
  }
  PartitionLog& open(LogOptions options = {}) {
    auto opened = subject_.open(options);
    EXPECT_TRUE(opened) << to_string(opened.error());
    log_ = std::move(opened->log);
    return *log_;
  }
  std::string read_all() { return read_text(subject_, *log_, everything_from({0})); }

  FilelogSubject subject_;
  std::unique_ptr<PartitionLog> log_;
};

TEST_F(FileLogTest, RollsByTheTimeOfItsRecords) {
  auto& log = open({.segment_age = std::chrono::milliseconds(500)});
  append_batch(log, 1, {1000});
  append_batch(log, 1, {1500});
  EXPECT_EQ(log.segments().size(), 1u);
  append_batch(log, 1, {1501});
  EXPECT_EQ(log.segments().size(), 2u);
  append_batch(log, 1, {1400});
  EXPECT_EQ(log.segments().size(), 2u);
}

TEST_F(FileLogTest, RollsByTheClockWhereRecordsHaveNoTime) {
  auto& log = open({.segment_age = std::chrono::seconds(10)});
  append_batch(log, 1, {-1});
  subject_.node().jump_wall(std::chrono::seconds(10));
  append_batch(log, 1, {-1});
  EXPECT_EQ(log.segments().size(), 1u);
  subject_.node().jump_wall(std::chrono::seconds(1));
  append_batch(log, 1, {-1});
  EXPECT_EQ(log.segments().size(), 2u);
}

TEST_F(FileLogTest, RollsWhenAnIndexIsFull) {
  auto& log = open({.index_interval_bytes = 0, .segment_index_bytes = 60});
  for (int at = 0; at < 12; ++at) append_batch(log, 1, {1000 + at});
  EXPECT_GT(log.segments().size(), 2u);
}

TEST_F(FileLogTest, RollsBeforeAnOffsetIsTooFarFromTheSegmentsName) {
  auto& log = open();
  constexpr std::int32_t last_delta = 2'000'000'000;
  std::string appended;
  for (int at = 0; at < 2; ++at) {
    BatchBuilder builder({.base_offset = log.bounds().end});
    builder.add({1000}, {}, {});
    builder.add_at(last_delta, {1000}, {}, {});
    const auto batch = std::move(builder).finish();
    ASSERT_TRUE(batch);
    const auto parts = parts_of(*batch);
    ASSERT_TRUE(log.append(std::span(&parts, 1)));
    appended += batch->text();
  }
  ASSERT_EQ(log.segments().size(), 2u);
  EXPECT_EQ(log.segments()[1].base, Offset{last_delta + 1});
  EXPECT_EQ(read_all(), appended);
}

TEST_F(FileLogTest, AFullDiskLeavesTheLogAsItWas) {
  auto& log = open();
  const auto first = append_batch(log, 3);
  const auto space = subject_.disk().space("/data");
  ASSERT_TRUE(space);
  subject_.disk().limit_bytes(space->bytes_total - space->bytes_free + 150);
  const auto parts = parts_of(make_batch({3}, 3, {1000}, 1000));
  const auto refused = log.append(std::span(&parts, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::io);
  EXPECT_EQ(log.bounds().end, Offset{3});
  EXPECT_EQ(read_all(), joined({first}));
  subject_.disk().limit_bytes({});
  const auto second = append_batch(log, 3);
  EXPECT_EQ(read_all(), joined({first, second}));
}

// The last bytes of a disk are not for records: what makes room needs them.
TEST_F(FileLogTest, WritingStopsBeforeTheDiskIsFullAndResumesByItself) {
  auto& log = open({.segment_bytes = 4000});
  auto& disk = subject_.disk();
  disk.limit_bytes(64'000);
  std::string appended;
  Result<Ticket> last = Ticket{};
  while (last) {
    const auto batch = make_batch(log.bounds().end, 1, {1000}, 500);
    const auto parts = parts_of(batch);
    last = log.append(std::span(&parts, 1));
    if (last) appended += batch.text();
  }
  EXPECT_EQ(last.error().code, Errc::io);
  EXPECT_TRUE(last.error().detail.contains("the disk is full")) << last.error().detail;
  EXPECT_GE(disk.space("/data")->bytes_free, 64'000u / 64);
  EXPECT_EQ(read_all(), appended);
  EXPECT_TRUE(subject_.run(log.flush(log.bounds().end)));
  ASSERT_TRUE(log.trim_before(log.segments().back().base));
  subject_.run_until([&] { return disk.space("/data")->bytes_free > 30'000; });
  append_batch(log, 1, {1000}, 500);
}

TEST_F(FileLogTest, FilesOfWhatWasTrimmedGoAfterTheDelay) {
  auto& log = open({.segment_bytes = 1000, .file_delete_delay = std::chrono::seconds(60)});
  while (log.segments().size() < 3) append_batch(log, 1, {1000}, 300);
  ASSERT_TRUE(log.trim_before(log.segments().back().base));
  const auto gone = std::string(orders_folder) + "/00000000000000000000.log.deleted";
  subject_.world().run_for(std::chrono::seconds(59));
  EXPECT_TRUE(subject_.exists(gone));
  subject_.world().run_for(std::chrono::seconds(2));
  EXPECT_FALSE(subject_.exists(gone));
}

// What waits for its end makes room at once.
TEST_F(FileLogTest, AFullDiskWaitsForNoDelay) {
  auto& log = open({.segment_bytes = 4000, .file_delete_delay = std::chrono::hours(24)});
  auto& disk = subject_.disk();
  disk.limit_bytes(64'000);
  const auto append = [&] {
    const auto parts = parts_of(make_batch(log.bounds().end, 1, {1000}, 500));
    return log.append(std::span(&parts, 1));
  };
  for (int n = 0; n < 60; ++n) ASSERT_TRUE(append());
  ASSERT_TRUE(log.trim_before(log.segments().back().base));
  while (append()) {
  }
  subject_.run_until([&] { return disk.space("/data")->bytes_free > 20'000; });
  EXPECT_TRUE(append());
}

TEST_F(FileLogTest, APreallocatedFileEndsWithItsRecordsOnceItIsFullOrClosed) {
  const LogOptions options{.segment_bytes = 4000, .preallocate = true};
  auto& log = open(options);
  std::string appended;
  const auto first = std::string(orders_folder) + "/00000000000000000000.log";
  EXPECT_EQ(subject_.content(first).size(), 4000u);
  while (log.segments().size() < 2) appended += append_batch(log, 1, {1000}, 500).text();
  EXPECT_EQ(subject_.content(first).size(), log.segments()[0].bytes);
  EXPECT_EQ(read_all(), appended);
  const auto second =
      std::string(orders_folder) + "/" + offset_name(log.segments()[1].base, log_suffix);
  EXPECT_EQ(subject_.content(second).size(), 4000u);
  const auto used = log.segments()[1].bytes;
  subject_.close(log_);
  EXPECT_EQ(subject_.content(second).size(), used);
  open(options);
  EXPECT_EQ(read_all(), appended);
}

TEST_F(FileLogTest, ThePreallocatedRestOfACrashedLogIsNoTear) {
  const LogOptions options{.segment_bytes = 4000, .preallocate = true};
  auto& log = open(options);
  const auto appended = append_batch(log, 1, {1000}, 500);
  ASSERT_TRUE(subject_.run(log.flush(log.bounds().end)));
  subject_.crash(log_);
  subject_.lock();
  auto opened = subject_.open(options);
  ASSERT_TRUE(opened) << to_string(opened.error());
  log_ = std::move(opened->log);
  EXPECT_EQ(opened->bytes_cut, 0u);
  EXPECT_EQ(opened->cut_reason, "");
  EXPECT_EQ(read_all(), joined({appended}));
}

// Indexes are caches: that they cannot be written costs no record and no log.
TEST_F(FileLogTest, IndexesThatDoNotFitAreWrittenLater) {
  auto& log = open({.index_interval_bytes = 0});
  for (int at = 0; at < 10; ++at) append_batch(log, 1);
  ASSERT_TRUE(log.roll());
  subject_.run_until([&] { return log.bounds().recovery_point == Offset{10}; });
  for (int at = 0; at < 10; ++at) append_batch(log, 1);
  const auto space = subject_.disk().space("/data");
  subject_.disk().limit_bytes(space->bytes_total - space->bytes_free);
  EXPECT_FALSE(subject_.run(log.flush({20})));
  EXPECT_EQ(log.bounds().recovery_point, Offset{10});
  subject_.disk().limit_bytes({});
  append_batch(log, 1);
  EXPECT_TRUE(subject_.run(log.flush({21})));
  EXPECT_EQ(log.bounds().recovery_point, Offset{21});
}

TEST_F(FileLogTest, ABadSpotTakesOneLogOffline) {
  auto& log = open();
  append_batch(log, 3);
  auto other = subject_.open({}, {"others", 0});
  ASSERT_TRUE(other);
  append_batch(*other->log, 3);
  subject_.disk().fail_below(orders_folder);
  const auto parts = parts_of(make_batch({3}, 1, {1000}));
  EXPECT_FALSE(log.append(std::span(&parts, 1)));
  EXPECT_FALSE(subject_.run(log.flush({3})));
  append_batch(*other->log, 1);
  EXPECT_TRUE(subject_.run(other->log->flush({4})));
  subject_.disk().fail_below("");
  EXPECT_FALSE(log.append(std::span(&parts, 1))) << "what is on disk is unknown";
  EXPECT_EQ(log.bounds().end, Offset{3});
  EXPECT_FALSE(read_all().empty());
  subject_.close(other->log);
  EXPECT_FALSE(subject_.run(log.close()));
  log_.reset();
}

TEST_F(FileLogTest, WritesNothingMoreOnceAFlushHasFailed) {
  auto& log = open();
  append_batch(log, 3);
  subject_.disk().fail_syncs(true);
  EXPECT_FALSE(subject_.run(log.flush({3})));
  subject_.disk().fail_syncs(false);
  EXPECT_FALSE(subject_.run(log.flush({3})))
      << "the system may have dropped what it could not write";
  const auto parts = parts_of(make_batch({3}, 1, {1000}));
  EXPECT_FALSE(log.append(std::span(&parts, 1)));
  EXPECT_EQ(log.bounds().recovery_point, Offset{0});
  EXPECT_FALSE(subject_.run(log.close()));
  log_.reset();
}

TEST_F(FileLogTest, ALogThatWasNeverWrittenToClosesWithoutTheDisk) {
  for (int run = 0; run < 2; ++run) {
    auto opened = subject_.open();
    ASSERT_TRUE(opened) << to_string(opened.error());
    EXPECT_EQ(opened->created, run == 0);
    subject_.disk().fail_syncs(true);
    subject_.close(opened->log);
    subject_.disk().fail_syncs(false);
  }
}

TEST_F(FileLogTest, AnIdleLogClosesWithoutTheDisk) {
  append_batch(open(), 3);
  for (int run = 0; run < 2; ++run) {
    subject_.close(log_);
    subject_.close_storage();
    subject_.restart();
    subject_.lock();
    open();
  }
  subject_.disk().fail_syncs(true);
  subject_.close(log_);
}

TEST_F(FileLogTest, ACloseThatNobodyWaitsForEndsWithoutTheDisk) {
  auto& log = open();
  std::string appended;
  for (int at = 0; at < 3; ++at) {
    appended += append_batch(log, 3).text();
    ASSERT_TRUE(log.roll());
  }
  CancelScope patience;
  auto closing = start(subject_.shard(), log.close(), &patience);
  ASSERT_FALSE(closing.is_ready());
  patience.cancel();
  subject_.run_until([&] { return closing.is_ready(); });
  const auto closed = closing.await_resume();
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Errc::cancelled);
  log_.reset();
  subject_.close_storage();
  // The first roll had begun a flush of the first segment.
  for (const auto& line : subject_.world().trace().lines()) {
    for (const auto* segment : {"3.log", "6.log", "9.log"}) {
      EXPECT_FALSE(line.contains("sync /data/") && line.ends_with(segment)) << line;
    }
  }

  subject_.restart();
  subject_.lock();
  const auto opened = subject_.open();
  ASSERT_TRUE(opened);
  EXPECT_LE(opened->checked_from, Offset{3});
  EXPECT_EQ(read_text(subject_, *opened->log, everything_from({0})), appended);
  EXPECT_TRUE(subject_.run(opened->log->close()));
}

TEST_F(FileLogTest, ManySegmentsAreSyncedTogether) {
  auto& log = open();
  std::string appended;
  for (int at = 0; at < 40; ++at) {
    appended += append_batch(log, 3).text();
    ASSERT_TRUE(log.roll());
  }
  subject_.close(log_);
  const auto& lines = subject_.world().trace().lines();
  const auto count = [&lines](std::string_view what) {
    return std::ranges::count_if(lines, [&](const auto& line) { return line.contains(what); });
  };
  EXPECT_GE(count("sync all /data/orders-0"), 1);
  EXPECT_LE(count("sync /data/orders-0/00000000000000000090.index"), 0);
  subject_.node().crash();
  subject_.node().restart();
  subject_.restart();
  subject_.lock();
  open();
  EXPECT_EQ(read_all(), appended);
}

TEST_F(FileLogTest, FlushesThatWaitShareOne) {
  auto& log = open();
  append_batch(log, 3);
  std::vector<Pending<>> flushes;
  for (int at = 0; at < 10; ++at) flushes.push_back(start(subject_.shard(), log.flush({3})));
  append_batch(log, 3);
  for (int at = 0; at < 10; ++at) flushes.push_back(start(subject_.shard(), log.flush({6})));
  subject_.run_until([&] {
    return std::ranges::all_of(flushes, [](const auto& flush) { return flush.is_ready(); });
  });
  for (auto& flush : flushes) EXPECT_TRUE(flush.await_resume());
  EXPECT_EQ(log.bounds().recovery_point, Offset{6});
  const auto& lines = subject_.world().trace().lines();
  EXPECT_LE(
      std::ranges::count_if(lines,
                            [](const std::string& line) {
                              return line.find("sync /data/orders-0/00000000000000000000.log") !=
                                     std::string::npos;
                            }),
      2);
}

TEST_F(FileLogTest, ARolledSegmentIsFlushedBehindTheScenes) {
  auto& log = open();
  append_batch(log, 3);
  ASSERT_TRUE(log.roll());
  EXPECT_EQ(log.bounds().recovery_point, Offset{0});
  subject_.run_until([&] { return log.bounds().recovery_point == Offset{3}; });
  EXPECT_TRUE(subject_.exists(std::string(orders_folder) + "/00000000000000000000.timeindex"));
}

TEST_F(FileLogTest, TrimmedFilesAreRemoved) {
  auto& log = open();
  append_batch(log, 3);
  ASSERT_TRUE(log.roll());
  append_batch(log, 3);
  ASSERT_TRUE(log.trim_before({3}));
  subject_.run_until([&] {
    return subject_.names(orders_folder) == std::vector<std::string>{"00000000000000000003.log"};
  });
}

TEST_F(FileLogTest, AReadGoesOnWhileItsSegmentIsLoadedAndTrimmed) {
  auto& log = open();
  append_batch(log, 3);
  ASSERT_TRUE(log.roll());
  append_batch(log, 3);
  ASSERT_TRUE(log.roll());
  const auto third = append_batch(log, 3);
  subject_.close(log_);
  const std::vector<PartitionOffset> point{{testing::orders, {9}}};
  ASSERT_TRUE(subject_.run(subject_.storage().checkpoint(CheckpointKind::recovery_point, point)));
  auto& again = open();
  auto reading = start(subject_.shard(), again.read(everything_from({0})));
  ASSERT_FALSE(reading.is_ready());
  ASSERT_TRUE(again.trim_before({6}));
  subject_.run_until([&] { return reading.is_ready(); });
  EXPECT_TRUE(reading.await_resume());
  EXPECT_EQ(read_text(subject_, again, everything_from({6})), joined({third}));
}

}  // namespace
}  // namespace millrace::filelog
