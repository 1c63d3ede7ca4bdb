// What a start makes of a data directory that was not left in order.
#include <random>

#include <millrace/filelog/names.h>

#include "filelog_subject.h"

namespace millrace::filelog {
namespace {

using testing::append_batch;
using testing::everything_from;
using ::testing::HasSubstr;
using testing::joined;
using testing::make_batch;
using testing::orders;
using testing::read_text;

const std::string first_log = std::string(orders_folder) + "/00000000000000000000.log";
const std::string first_index = std::string(orders_folder) + "/00000000000000000000.index";
const std::string first_times = std::string(orders_folder) + "/00000000000000000000.timeindex";
constexpr const char* clean_mark = "/data/.kafka_cleanshutdown";

class RecoveryTest : public ::testing::Test {
 protected:
  /// A data directory that knows the partition, with this log file and a recovery point before it.
  void given_log(std::string_view content, std::int64_t recovery_point = 0) {
    subject_.write(first_log, content);
    subject_.write("/data/recovery-point-offset-checkpoint",
                   "0\n1\norders 0 " + std::to_string(recovery_point) + "\n");
  }
  PartitionLog& open(LogOptions options = {}) {
    subject_.lock();
    auto opened = subject_.open(options);
    EXPECT_TRUE(opened) << to_string(opened.error());
    opened_ = std::move(*opened);
    return *opened_.log;
  }
  std::string read_all() {
    return read_text(subject_, *opened_.log, everything_from(opened_.log->bounds().start));
  }
  void stop() {
    subject_.close(opened_.log);
    subject_.close_storage();
    subject_.restart();
  }

  FilelogSubject subject_;
  Opened opened_;
  const Buffer a_ = make_batch({0}, 3, {1000});
  const Buffer b_ = make_batch({3}, 3, {2000});
  const Buffer c_ = make_batch({6}, 3, {3000});
  const std::string whole_ = joined({a_, b_, c_});
};

TEST_F(RecoveryTest, CutsATornTailAndSaysSo) {
  for (std::size_t missing = 1; missing < c_.size(); missing += 7) {
    FilelogSubject subject;
    subject.write(first_log, whole_.substr(0, whole_.size() - missing));
    subject.write("/data/recovery-point-offset-checkpoint", "0\n1\norders 0 3\n");
    subject.lock();
    auto opened = subject.open();
    ASSERT_TRUE(opened) << to_string(opened.error());
    EXPECT_EQ(opened->log->bounds().end, Offset{6});
    EXPECT_EQ(opened->bytes_cut, c_.size() - missing);
    EXPECT_THAT(opened->cut_reason, HasSubstr("the file ends within a batch"));
    EXPECT_EQ(subject.content(first_log), joined({a_, b_}));
    subject.close(opened->log);
  }
}

TEST_F(RecoveryTest, CutsATailOfZeros) {
  given_log(whole_ + std::string(5000, '\0'));
  EXPECT_EQ(open().bounds().end, Offset{9});
  EXPECT_EQ(opened_.bytes_cut, 5000u);
  EXPECT_THAT(opened_.cut_reason, HasSubstr("zeros up to the end of the file"));
}

TEST_F(RecoveryTest, CutsAtDamageBehindTheRecoveryPoint) {
  auto content = whole_;
  content[a_.size() + 70] ^= 1;
  given_log(content);
  EXPECT_EQ(open().bounds().end, Offset{3});
  EXPECT_EQ(opened_.bytes_cut, b_.size() + c_.size());
  EXPECT_THAT(opened_.cut_reason, HasSubstr("checksum"));
  EXPECT_EQ(opened_.checked_from, Offset{0});
}

TEST_F(RecoveryTest, DoesNotLookForDamageBelowTheRecoveryPoint) {
  // Rows of an index say where to begin, so the first batch is not read.
  OffsetIndex index;
  index.add({5, static_cast<std::int32_t>(a_.size())});
  subject_.write(first_index, as_text(index.encode(0)));
  subject_.write(first_times, "");
  auto content = whole_;
  content[70] ^= 1;
  given_log(content, 6);
  EXPECT_EQ(open().bounds().end, Offset{9});
  EXPECT_EQ(opened_.bytes_cut, 0u);
  EXPECT_EQ(opened_.checked_from, Offset{6});
}

TEST_F(RecoveryTest, RemovesNothingBehindDamageWhenNoRecoveryPointIsKnown) {
  auto content = whole_;
  content[a_.size() + 70] ^= 1;
  subject_.write(first_log, content);
  subject_.lock();
  const auto opened = subject_.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
  EXPECT_THAT(opened.error().detail, HasSubstr("no recovery point is known for orders-0"));
  EXPECT_EQ(subject_.content(first_log), content);
}

TEST_F(RecoveryTest, CutsWhereOffsetsGoBack) {
  given_log(joined({a_, b_, a_}));
  EXPECT_EQ(open().bounds().end, Offset{6});
  EXPECT_THAT(opened_.cut_reason, HasSubstr("offsets 0 to 2 where 6 or more is due"));
}

TEST_F(RecoveryTest, CutsLaterSegmentsWithATear) {
  given_log(joined({a_, b_}).substr(0, a_.size() + 30));
  subject_.write(std::string(orders_folder) + "/00000000000000000006.log", joined({c_}));
  EXPECT_EQ(open().bounds().end, Offset{3});
  EXPECT_EQ(opened_.bytes_cut, 30 + c_.size());
  EXPECT_THAT(opened_.cut_reason, HasSubstr("with 1 later segments"));
  EXPECT_FALSE(subject_.exists(std::string(orders_folder) + "/00000000000000000006.log"));
}

TEST_F(RecoveryTest, CutsLaterSegmentsBehindALostBatch) {
  given_log(joined({a_}));
  subject_.write(std::string(orders_folder) + "/00000000000000000006.log", joined({c_}));
  EXPECT_EQ(open().bounds().end, Offset{3});
  EXPECT_THAT(opened_.cut_reason, HasSubstr("ends at offset 3, the next segment starts at 6"));
}

TEST_F(RecoveryTest, TakesGapsBetweenSegmentsForCompactionWhenNoRecoveryPointIsKnown) {
  subject_.write(first_log, joined({a_}));
  subject_.write(std::string(orders_folder) + "/00000000000000000006.log", joined({c_}));
  EXPECT_EQ(open().bounds().end, Offset{9});
  EXPECT_EQ(read_all(), joined({a_, c_}));
}

TEST_F(RecoveryTest, RebuildsIndexesThatAreWrong) {
  const LogOptions options{.index_interval_bytes = 100};
  auto& log = open(options);
  for (int at = 0; at < 20; ++at) append_batch(log, 2, {1000 + at});
  const auto content = read_all();
  stop();
  const auto index = subject_.content(first_index);
  const auto times = subject_.content(first_times);
  ASSERT_GT(index.size(), 8u);
  for (const std::string_view garbage : {"", "x", "garbage that is not rows at all.", "gone"}) {
    subject_.write(first_index, garbage);
    subject_.write(first_times, garbage);
    if (garbage == "gone") {
      ASSERT_TRUE(subject_.disk().remove(first_index));
      ASSERT_TRUE(subject_.disk().remove(first_times));
    }
    open(options);
    EXPECT_EQ(read_all(), content);
    stop();
    if (garbage.empty()) continue;  // an index without rows is a right one
    EXPECT_EQ(subject_.content(first_index), index) << garbage;
    EXPECT_EQ(subject_.content(first_times), times) << garbage;
  }
}

TEST_F(RecoveryTest, ChecksWhatWasWrittenSinceTheLastStopAndNoMore) {
  append_batch(open(), 3);
  stop();
  append_batch(open(), 3);
  EXPECT_EQ(opened_.checked_from, Offset{3});
  subject_.crash(opened_.log);
  const auto& log = open();
  EXPECT_EQ(opened_.checked_from, Offset{3});
  EXPECT_GE(log.bounds().end, Offset{3});
  stop();
}

TEST_F(RecoveryTest, CompletesIndexesThatEndEarly) {
  auto& log = open({.index_interval_bytes = 0});
  for (int at = 0; at < 10; ++at) append_batch(log, 1, {1000 + at});
  ASSERT_TRUE(log.roll());
  append_batch(log, 1, {5000});
  stop();
  const auto offsets = subject_.content(first_index);
  const auto times = subject_.content(first_times);
  ASSERT_EQ(offsets.size(), 9 * OffsetIndex::row_bytes);
  subject_.write(first_index, offsets.substr(0, 2 * OffsetIndex::row_bytes));
  subject_.write(first_times, times.substr(0, 3 * TimeIndex::row_bytes));
  open({.index_interval_bytes = 0});
  EXPECT_EQ(subject_.run(opened_.log->batch_at({1000}))->base_offset, Offset{0});
  EXPECT_EQ(subject_.run(opened_.log->batch_at({1009}))->base_offset, Offset{9});
  EXPECT_EQ(subject_.content(first_index), offsets);
  EXPECT_EQ(subject_.content(first_times), times);
  stop();
}

TEST_F(RecoveryTest, DoesNotFollowARowToNowhere) {
  OffsetIndex index;
  index.add({2, 13});
  subject_.write(first_index, as_text(index.encode(0)));
  subject_.write(first_times, "");
  given_log(whole_, 9);
  EXPECT_EQ(open().bounds().end, Offset{9});
  EXPECT_EQ(opened_.bytes_cut, 0u);
  EXPECT_EQ(read_all(), whole_);
}

TEST_F(RecoveryTest, OpensWhateverTheFileHolds) {
  std::mt19937_64 random(1);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  subject_.lock();
  for (int round = 0; round < 3000; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    auto content = whole_;
    for (auto changes = 1 + below(4); changes > 0; --changes) {
      if (content.empty()) break;
      const auto at = below(content.size());
      switch (below(4)) {
        case 0: content[at] = static_cast<char>(random()); break;
        case 1: content.erase(at, below(20)); break;
        case 2: content.insert(at, content.substr(below(content.size()), below(100))); break;
        default: content.resize(at);
      }
    }
    const TopicPartition partition{"round", round};
    const auto log_file = "/data/round-" + std::to_string(round) + "/00000000000000000000.log";
    subject_.write(log_file, content);
    const auto opened = subject_.open({}, partition);
    if (!opened) {
      EXPECT_EQ(opened.error().code, Errc::corrupt);
      EXPECT_EQ(subject_.content(log_file), content);
      continue;
    }
    const auto kept = subject_.content(log_file);
    EXPECT_EQ(kept.size() + opened->bytes_cut, content.size());
    EXPECT_TRUE(content.starts_with(kept));
    EXPECT_EQ(read_text(subject_, *opened->log, everything_from({0})), kept);
    EXPECT_TRUE(subject_.run(opened->log->close()));
  }
}

TEST_F(RecoveryTest, RemovesItsOwnLeftoversAndNothingElse) {
  const std::string folder = orders_folder;
  given_log(whole_);
  for (const auto* leftover : {"00000000000000000000.log.deleted", "00000000000000000009.index",
                               "00000000000000000003.log.cleaned", "00000000000000000003.log.swap",
                               "00000000000000000003.snapshot.tmp"}) {
    subject_.write(folder + "/" + leftover, "leftover");
  }
  subject_.write(folder + "/notes.txt", "not ours");
  subject_.write("/data/not-a-partition/file", "not ours");
  open();
  EXPECT_THAT(subject_.names(folder),
              ::testing::ElementsAre("00000000000000000000.log", "notes.txt"));
  EXPECT_TRUE(subject_.exists("/data/not-a-partition/file"));
  EXPECT_EQ(read_all(), whole_);
}

TEST_F(RecoveryTest, FinishesACompactionThatHadWrittenEverything) {
  const std::string folder = orders_folder;
  given_log(joined({a_, b_}), 9);
  subject_.write(folder + "/00000000000000000006.log", joined({c_}));
  subject_.write(folder + "/00000000000000000000.log.swap", joined({b_, c_}));
  subject_.write(folder + "/00000000000000000000.index.swap", "rows");
  open();
  EXPECT_EQ(read_all(), joined({b_, c_}));
  EXPECT_FALSE(subject_.exists(folder + "/00000000000000000006.log"));
  EXPECT_FALSE(subject_.exists(folder + "/00000000000000000000.index.swap"));
}

TEST_F(RecoveryTest, KeepsAndListsAFolderWithoutMetadata) {
  given_log(whole_);
  subject_.lock();
  const auto found = subject_.run(subject_.storage().list());
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_TRUE(found->front().topic_id.is_none());
  const Uuid id{{7}};
  auto opened = subject_.open({.topic_id = id});
  ASSERT_TRUE(opened) << to_string(opened.error());
  EXPECT_EQ(opened->log->bounds().end, Offset{9});
  EXPECT_EQ(subject_.content(std::string(orders_folder) + "/partition.metadata"),
            "version: 0\ntopic_id: " + to_string(id) + "\n");
  subject_.close(opened->log);
}

TEST_F(RecoveryTest, WritesMetadataAnewWhereACrashHasTornIt) {
  const Uuid id{{7}};
  const auto whole = "version: 0\ntopic_id: " + to_string(id) + "\n";
  const auto path = std::string(orders_folder) + "/partition.metadata";
  for (std::size_t bytes = 0; bytes + 1 < whole.size(); ++bytes) {
    for (const auto& torn : {whole.substr(0, bytes), std::string(bytes, '\0')}) {
      FilelogSubject subject;
      subject.write(first_log, whole_);
      subject.write(path, torn);
      subject.lock();
      auto opened = subject.open({.topic_id = id});
      ASSERT_TRUE(opened) << bytes << ": " << to_string(opened.error());
      EXPECT_EQ(opened->log->bounds().end, Offset{9});
      EXPECT_EQ(subject.content(path), whole);
      subject.close(opened->log);
    }
  }
}

// Nothing of it was synced but its name and its recovery point.
TEST_F(RecoveryTest, ANewLogSurvivesTheLossOfPowerAsAnEmptyOne) {
  const Uuid id{{7}};
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    FilelogSubject subject(seed);
    subject.lock();
    auto opened = subject.open({.topic_id = id});
    ASSERT_TRUE(opened) << to_string(opened.error());
    if (seed % 2 == 0) append_batch(*opened->log, 3);
    subject.crash(opened->log);
    subject.lock();
    opened = subject.open({.topic_id = id});
    ASSERT_TRUE(opened) << to_string(opened.error());
    EXPECT_FALSE(opened->created);
    append_batch(*opened->log, 3);
    subject.close(opened->log);
  }
}

TEST_F(RecoveryTest, TheFirstFlushMakesANewLogDurable) {
  const Uuid id{{7}};
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    FilelogSubject subject(seed);
    subject.lock();
    auto opened = subject.open({.topic_id = id});
    ASSERT_TRUE(opened) << to_string(opened.error());
    append_batch(*opened->log, 3);
    ASSERT_TRUE(subject.run(opened->log->flush({3})));
    subject.crash(opened->log);
    subject.lock();
    const auto found = subject.run(subject.storage().list());
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), 1u);
    EXPECT_EQ(found->front().topic_id, id);
    opened = subject.open({.topic_id = id});
    ASSERT_TRUE(opened) << to_string(opened.error());
    EXPECT_EQ(opened->log->bounds().end, Offset{3});
    subject.close(opened->log);
  }
}

TEST_F(RecoveryTest, ARemovedPartitionStaysAwayWhenThePowerIsLost) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    FilelogSubject subject(seed);
    subject.lock();
    auto opened = subject.open();
    ASSERT_TRUE(opened) << to_string(opened.error());
    append_batch(*opened->log, 3);
    subject.close(opened->log);
    ASSERT_TRUE(subject.run(subject.storage().remove(orders)));
    std::unique_ptr<PartitionLog> nothing;
    subject.crash(nothing);
    subject.lock();
    EXPECT_TRUE(subject.run(subject.storage().list())->empty());
    opened = subject.open();
    ASSERT_TRUE(opened) << to_string(opened.error());
    EXPECT_TRUE(opened->created);
    EXPECT_EQ(opened->log->bounds().end, Offset{0});
    subject.close(opened->log);
  }
}

TEST_F(RecoveryTest, ALogThatWasRemovedNeedsNoCleanEnd) {
  append_batch(open(), 3);
  CancelScope hurried;
  hurried.cancel();
  auto closing = opened_.log->close().within(hurried);
  EXPECT_EQ(subject_.run(std::move(closing)).error().code, Errc::cancelled);
  // Who still has the log, such as a request that was refused, does not keep it.
  ASSERT_TRUE(subject_.run(subject_.storage().remove(orders)));
  opened_.log.reset();
  subject_.close_storage();
  EXPECT_TRUE(subject_.exists(clean_mark));
}

TEST_F(RecoveryTest, UsesTheCleanMarkUpBeforeAnythingIsOpened) {
  append_batch(open(), 3);
  EXPECT_FALSE(subject_.exists(clean_mark));
  stop();
  EXPECT_TRUE(subject_.exists(clean_mark));
  subject_.lock();
  EXPECT_FALSE(subject_.exists(clean_mark));

  // A crash now, while it loads, must not count as a clean stop.
  std::unique_ptr<PartitionLog> nothing;
  subject_.crash(nothing);
  const auto content = subject_.content(first_log);
  subject_.write(first_log, content.substr(0, content.size() - 10));
  EXPECT_EQ(open().bounds().end, Offset{0});
  EXPECT_GT(opened_.bytes_cut, 0u);
}

TEST_F(RecoveryTest, MarksNoCleanStopWhileSomethingIsUnchecked) {
  given_log(whole_);
  subject_.write("/data/payments-0/00000000000000000000.log", whole_);
  open();
  stop();
  EXPECT_FALSE(subject_.exists(clean_mark));

  subject_.lock();
  for (const auto& partition : {orders, TopicPartition{"payments", 0}}) {
    auto opened = subject_.open({}, partition);
    ASSERT_TRUE(opened) << to_string(opened.error());
    subject_.close(opened->log);
  }
  subject_.close_storage();
  EXPECT_TRUE(subject_.exists(clean_mark));
}

TEST_F(RecoveryTest, IsNotCleanAfterALogThatCouldNotBeFlushed) {
  append_batch(open(), 3);
  subject_.disk().fail_syncs(true);
  EXPECT_FALSE(subject_.run(opened_.log->close()));
  opened_.log.reset();
  subject_.disk().fail_syncs(false);
  subject_.close_storage();
  EXPECT_FALSE(subject_.exists(clean_mark));
}

TEST_F(RecoveryTest, BeginsAtALogStartThatIsBeyondWhatIsLeft) {
  given_log(joined({a_}));
  subject_.write("/data/log-start-offset-checkpoint", "0\n1\norders 0 7\n");
  EXPECT_EQ(open().bounds().start, Offset{7});
  EXPECT_EQ(opened_.log->bounds().end, Offset{7});
  EXPECT_THAT(subject_.names(orders_folder), ::testing::ElementsAre("00000000000000000007.log"));
  EXPECT_EQ(opened_.bytes_cut, a_.size());
  EXPECT_THAT(opened_.cut_reason, HasSubstr("below its start"));
}

TEST_F(RecoveryTest, FinishesRemovingAPartition) {
  const auto doomed = "/data/" + doomed_folder(orders, Uuid{{1}});
  subject_.write(doomed + "/00000000000000000000.log", whole_);
  subject_.lock();
  EXPECT_FALSE(subject_.exists(doomed));
}

}  // namespace
}  // namespace millrace::filelog
