// What is written ahead of an append: seen by nobody, void once anything else moves the log's tail.
#include <millrace/filelog/names.h>
#include <millrace/write_ahead.h>

#include "filelog_subject.h"

namespace millrace::filelog {
namespace {

using testing::append_batch;
using testing::everything_from;
using testing::joined;
using testing::make_batch;
using testing::parts_of;
using testing::read_text;

using Ahead = std::shared_ptr<const void>;

constexpr std::size_t large_bytes = (3UL << 20) + 1000;  // many pieces
constexpr std::uint64_t disk_bytes = 1UL << 32;

class WriteAheadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    subject_.disk().limit_bytes(disk_bytes);  // what is used is known of a disk with a size
    subject_.lock();
    open();
  }
  void TearDown() override {
    if (log_) subject_.close(log_);
  }
  Opened open(LogOptions options = {}) {
    auto opened = testing::required(subject_.open(options));
    log_ = std::move(opened.log);
    return opened;
  }
  void reopen(LogOptions options) {
    subject_.close(log_);
    open(options);
  }
  Buffer large() const { return make_batch(log_->bounds().end, 1, {1000}, large_bytes); }
  /// One piece of it is written when this returns.
  Pending<Ahead> begin(const Buffer& batch) {
    const auto before = bytes_used();
    auto writing =
        start(subject_.shard(), WriteAheadLog::of(*log_)->write_ahead({parts_of(batch)}));
    subject_.run_until([&] { return bytes_used() > before; });
    return writing;
  }
  Result<Ahead> end(Pending<Ahead>& writing) {
    subject_.run_until([&writing] { return writing.is_ready(); });
    return writing.await_resume();
  }
  Ahead write_ahead(const Buffer& batch) {
    auto writing = begin(batch);
    return testing::required(end(writing));
  }
  Result<Ticket> append(const Buffer& batch) {
    const auto parts = parts_of(batch);
    return log_->append(std::span(&parts, 1));
  }
  std::uint64_t bytes_used() {
    const auto space = subject_.disk().space("/data");
    return space->bytes_total - space->bytes_free;
  }
  std::uint64_t file_bytes(Offset base = {0}) {
    const auto info =
        subject_.disk().info(std::string(orders_folder) + "/" + offset_name(base, log_suffix));
    return info ? info->size : 0;
  }
  std::string read_all() { return read_text(subject_, *log_, everything_from({0})); }
  void expect(const std::string& content) { EXPECT_TRUE(read_all() == content); }

  FilelogSubject subject_;
  std::unique_ptr<PartitionLog> log_;
};

TEST_F(WriteAheadTest, NobodySeesItBeforeItIsAppended) {
  const auto first = append_batch(*log_, 3);
  const auto bounds = log_->bounds();
  const auto batch = large();
  auto writing = begin(batch);
  EXPECT_GT(file_bytes(), bounds.bytes);
  expect(joined({first}));
  const auto ahead = testing::required(end(writing));
  EXPECT_EQ(file_bytes(), bounds.bytes + batch.size());
  EXPECT_EQ(log_->bounds().end, bounds.end);
  EXPECT_EQ(log_->bounds().bytes, bounds.bytes);
  expect(joined({first}));
  ASSERT_TRUE(append(batch));
  EXPECT_EQ(log_->bounds().end, Offset{4});
  expect(joined({first, batch}));
}

TEST_F(WriteAheadTest, OthersOfTheShardRunBetweenItsPieces) {
  const auto batch = large();
  auto writing = begin(batch);
  std::vector<std::uint64_t> seen;
  std::function<void()> look = [&] {
    seen.push_back(file_bytes());
    if (!writing.is_ready()) subject_.shard().post(look);
  };
  subject_.shard().post(look);
  ASSERT_TRUE(end(writing));
  subject_.run_until([&] { return seen.back() == batch.size(); });
  EXPECT_GE(seen.size(), 3u);
  for (std::size_t at = 1; at < seen.size(); ++at) EXPECT_LE(seen[at] - seen[at - 1], 1u << 20);
}

// One piece in a round, however many logs have something large.
TEST_F(WriteAheadTest, LogsOfOneShardTakeTurns) {
  std::vector<std::unique_ptr<PartitionLog>> logs;
  std::vector<Buffer> batches;
  std::vector<Pending<Ahead>> writing;
  for (std::int32_t at = 0; at < 4; ++at) {
    auto opened = testing::required(subject_.open({}, {"others", at}));
    logs.push_back(std::move(opened.log));
    batches.push_back(large());
  }
  const auto before = bytes_used();
  for (std::size_t at = 0; at < logs.size(); ++at) {
    auto task = WriteAheadLog::of(*logs[at])->write_ahead({parts_of(batches[at])});
    writing.push_back(start(subject_.shard(), std::move(task)));
  }
  std::vector<std::uint64_t> seen{before};
  const auto ready = [&] {
    return std::ranges::all_of(writing, [](const auto& one) { return one.is_ready(); });
  };
  std::function<void()> look = [&] {
    seen.push_back(bytes_used());
    if (!ready()) subject_.shard().post(look);
  };
  subject_.shard().post(look);
  subject_.run_until([&] { return ready() && seen.back() == bytes_used(); });
  EXPECT_GE(seen.back() - before, logs.size() * large_bytes);
  for (std::size_t at = 1; at < seen.size(); ++at) EXPECT_LE(seen[at] - seen[at - 1], 1u << 20);
  for (std::size_t at = 0; at < logs.size(); ++at) {
    const auto ahead = testing::required(writing[at].await_resume());
    const auto parts = parts_of(batches[at]);
    ASSERT_TRUE(logs[at]->append(std::span(&parts, 1)));
    EXPECT_TRUE(read_text(subject_, *logs[at], everything_from({0})) == batches[at].text());
    subject_.close(logs[at]);
  }
}

TEST_F(WriteAheadTest, TheAppendWritesNothingMore) {
  const auto batch = large();
  const auto ahead = write_ahead(batch);
  subject_.disk().fail_below(orders_folder);
  EXPECT_TRUE(append(batch));
  subject_.disk().fail_below({});
  expect(joined({batch}));
}

TEST_F(WriteAheadTest, AnotherAppendTakesItsPlace) {
  const auto batch = large();
  auto writing = begin(batch);
  const auto small = append_batch(*log_, 1);
  EXPECT_EQ(file_bytes(), small.size());
  const auto ahead = testing::required(end(writing));
  EXPECT_EQ(file_bytes(), small.size());
  expect(joined({small}));
  const auto again = large();
  ASSERT_TRUE(append(again));
  expect(joined({small, again}));
}

TEST_F(WriteAheadTest, AnAppendOfItInTheMiddleWritesAllOfIt) {
  const auto batch = large();
  auto writing = begin(batch);
  ASSERT_TRUE(append(batch));
  ASSERT_TRUE(end(writing));
  expect(joined({batch}));
  const auto small = append_batch(*log_, 1);
  expect(joined({batch, small}));
}

TEST_F(WriteAheadTest, AnotherBatchOfTheSameOffsetsIsWritten) {
  const auto batch = large();
  const auto ahead = write_ahead(batch);
  auto parts = parts_of(batch);
  parts.body = parts_of(make_batch({1}, 1, {1000}, large_bytes)).body;  // of another letter
  const auto other = std::string(parts.header.text()) + std::string(parts.body.text());
  ASSERT_TRUE(log_->append(std::span(&parts, 1)));
  expect(other);
}

TEST_F(WriteAheadTest, AnotherHeaderOfTheSameBodyIsWritten) {
  const auto batch = large();
  const auto ahead = write_ahead(batch);
  auto parts = parts_of(batch);
  auto header = testing::required(read_batch_header(batch));
  header.partition_leader_epoch = {7};
  MutableBuffer fresh(batch_header_bytes);
  write_batch_header(header, fresh.space());
  fresh.filled(batch_header_bytes);
  parts.header = std::move(fresh).freeze();
  const auto other = std::string(parts.header.text()) + std::string(parts.body.text());
  ASSERT_TRUE(log_->append(std::span(&parts, 1)));
  expect(other);
}

TEST_F(WriteAheadTest, WhatNobodyKeepsIsWrittenByItsAppend) {
  const auto batch = large();
  (void)write_ahead(batch);
  ASSERT_TRUE(append(batch));
  EXPECT_EQ(file_bytes(), batch.size());
  expect(joined({batch}));
  (void)write_ahead(large());
  const auto small = append_batch(*log_, 1);
  EXPECT_EQ(file_bytes(), batch.size() + small.size());
}

TEST_F(WriteAheadTest, AFullDiskInTheMiddleLeavesTheLogAsItWas) {
  const auto first = append_batch(*log_, 3);
  const auto bytes = file_bytes();
  const auto batch = large();
  auto writing = begin(batch);
  subject_.disk().limit_bytes(bytes_used() + (1UL << 20) + 500);
  const auto refused = end(writing);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::io);
  EXPECT_EQ(file_bytes(), bytes);
  expect(joined({first}));
  subject_.disk().limit_bytes(disk_bytes);
  const auto ahead = write_ahead(batch);
  ASSERT_TRUE(append(batch));
  expect(joined({first, batch}));
}

TEST_F(WriteAheadTest, ADeathInTheMiddleLeavesATailThatIsCut) {
  const auto first = append_batch(*log_, 3);
  ASSERT_TRUE(subject_.run(log_->flush({3})));
  const auto bytes = file_bytes();
  auto writing = begin(large());
  const auto torn = file_bytes() - bytes;
  ASSERT_GT(torn, 0u);
  subject_.kill(log_);
  subject_.lock();
  const auto opened = open();
  EXPECT_EQ(opened.bytes_cut, torn);
  EXPECT_NE(opened.cut_reason, "");
  EXPECT_EQ(file_bytes(), bytes);
  expect(joined({first}));
  const auto second = append_batch(*log_, 1);
  expect(joined({first, second}));
}

TEST_F(WriteAheadTest, APowerCutInTheMiddleLeavesWhatWasFlushed) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    FilelogSubject subject(seed);
    subject.lock();
    auto log = testing::required(subject.open()).log;
    const auto first = append_batch(*log, 3);
    ASSERT_TRUE(subject.run(log->flush({3})));
    const auto batch = make_batch({3}, 1, {1000}, large_bytes);
    subject.disk().crash_after(2);  // in its third piece
    ASSERT_FALSE(subject.run(WriteAheadLog::of(*log)->write_ahead({parts_of(batch)})));
    subject.crash(log);
    subject.lock();
    log = testing::required(subject.open()).log;
    EXPECT_EQ(log->bounds().end, Offset{3});
    EXPECT_TRUE(read_text(subject, *log, everything_from({0})) == joined({first}));
    subject.close(log);
  }
}

// Replicas have the other append at these offsets, in the same epoch.
TEST_F(WriteAheadTest, APowerCutDoesNotBringBackWhatAnotherAppendTookThePlaceOf) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    FilelogSubject subject(seed);
    subject.lock();
    auto log = testing::required(subject.open()).log;
    const auto first = append_batch(*log, 3);
    ASSERT_TRUE(subject.run(log->flush({3})));
    const auto batch = make_batch({3}, 1, {1000}, 2000);  // one piece: whole with one write
    ASSERT_TRUE(subject.run(WriteAheadLog::of(*log)->write_ahead({parts_of(batch)})));
    const auto other = append_batch(*log, 1);
    subject.crash(log);
    subject.lock();
    log = testing::required(subject.open()).log;
    const auto found = read_text(subject, *log, everything_from({0}));
    EXPECT_TRUE(found == joined({first}) || found == joined({first, other})) << seed;
    subject.close(log);
  }
}

TEST_F(WriteAheadTest, ACloseInTheMiddleLeavesNothingOfIt) {
  const auto first = append_batch(*log_, 3);
  const auto bytes = file_bytes();
  auto writing = begin(large());
  subject_.close(log_);
  EXPECT_TRUE(writing.is_ready());
  EXPECT_EQ(file_bytes(), bytes);
  const auto opened = open();
  EXPECT_EQ(opened.bytes_cut, 0u);
  expect(joined({first}));
}

// Its caller lets go of the log then.
TEST_F(WriteAheadTest, ACloseThatFailsInTheMiddleWaitsForIt) {
  append_batch(*log_, 3);
  auto writing = begin(large());
  subject_.disk().fail_below(orders_folder);
  EXPECT_FALSE(subject_.run(log_->close()));
  EXPECT_TRUE(writing.is_ready());
  subject_.disk().fail_below({});
  log_.reset();
}

// Nothing else has changed since it was opened, and yet it is not as it was closed.
TEST_F(WriteAheadTest, ACutOfWhatWasWrittenAheadIsDurableOnceTheLogIsClosed) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    FilelogSubject subject(seed);
    subject.lock();
    auto log = testing::required(subject.open()).log;
    const auto first = append_batch(*log, 3);
    subject.close(log);
    subject.close_storage();
    subject.restart();
    subject.lock();
    log = testing::required(subject.open()).log;
    const auto parts = parts_of(make_batch({3}, 1, {1000}, large_bytes));
    ASSERT_TRUE(subject.run(WriteAheadLog::of(*log)->write_ahead({parts})));
    subject.close(log);
    subject.close_storage();
    subject.crash(log);
    const auto info =
        subject.disk().info(std::string(orders_folder) + "/" + offset_name({0}, log_suffix));
    ASSERT_TRUE(info);
    EXPECT_EQ(info->size, first.size());
  }
}

TEST_F(WriteAheadTest, ATruncationInTheMiddleEndsIt) {
  const auto first = append_batch(*log_, 3);
  append_batch(*log_, 2);
  auto writing = begin(large());
  ASSERT_TRUE(log_->truncate_from({3}));
  EXPECT_EQ(file_bytes(), first.size());
  ASSERT_TRUE(end(writing));
  EXPECT_EQ(file_bytes(), first.size());
  const auto batch = large();
  ASSERT_TRUE(append(batch));
  expect(joined({first, batch}));
}

TEST_F(WriteAheadTest, ARollInTheMiddleLeavesASegmentThatEndsWithItsRecords) {
  const auto first = append_batch(*log_, 3);
  auto writing = begin(large());
  ASSERT_TRUE(log_->roll());
  EXPECT_EQ(file_bytes(), first.size());
  ASSERT_TRUE(end(writing));
  EXPECT_EQ(file_bytes({3}), 0u);
  const auto batch = large();
  ASSERT_TRUE(append(batch));
  EXPECT_EQ(file_bytes(), first.size());
  expect(joined({first, batch}));
}

TEST_F(WriteAheadTest, AResetInTheMiddleEndsIt) {
  append_batch(*log_, 3);
  auto writing = begin(large());
  ASSERT_TRUE(log_->reset_to({100}));
  ASSERT_TRUE(end(writing));
  EXPECT_EQ(file_bytes({100}), 0u);
  const auto batch = append_batch(*log_, 1);
  EXPECT_TRUE(read_text(subject_, *log_, everything_from({100})) == joined({batch}));
}

TEST_F(WriteAheadTest, ItGoesIntoASegmentThatHasRoomForIt) {
  reopen({.segment_bytes = 4UL << 20});
  const auto first = append_batch(*log_, 1, {1000}, 2UL << 20);
  const auto batch = large();
  const auto ahead = write_ahead(batch);
  EXPECT_EQ(file_bytes(), first.size());
  EXPECT_EQ(file_bytes({1}), batch.size());
  ASSERT_TRUE(append(batch));
  EXPECT_EQ(log_->segments().size(), 2u);
  expect(joined({first, batch}));
}

TEST_F(WriteAheadTest, APreallocatedFileEndsWithItsRecordsOnceItIsClosed) {
  reopen({.segment_bytes = 8UL << 20, .preallocate = true});
  const auto first = append_batch(*log_, 3);
  ASSERT_TRUE(log_->roll());
  {
    const auto ahead = write_ahead(large());
  }
  const auto second = append_batch(*log_, 1);
  EXPECT_EQ(file_bytes({3}), second.size());
  subject_.close(log_);
  open();
  expect(joined({first, second}));
}

}  // namespace
}  // namespace millrace::filelog
