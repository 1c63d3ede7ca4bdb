// Who waits for the disk when old records are read, and what they take of the memory.
#include "plugins/storage/filelog/cold_reads.h"

#include <set>

#include <millrace/cached_file.h>

#include "filelog_subject.h"

namespace millrace::filelog {
namespace {

using testing::append_batch;
using testing::everything_from;
using testing::read_text;

constexpr std::size_t value_bytes = 10'000;
constexpr std::uint64_t batch_bytes = value_bytes + 70;  // about
constexpr const char* first_segment = "/data/orders-0/00000000000000000000.log";

class ColdLogTest : public ::testing::Test {
 protected:
  void begin(ColdLimits limits, int batches = 100, std::size_t bytes = value_bytes,
             std::int32_t records = 1) {
    subject_ = std::make_unique<FilelogSubject>(1, StorageSettings{.cold = limits});
    subject_->lock();
    auto opened = subject_->open();
    ASSERT_TRUE(opened) << to_string(opened.error());
    log_ = std::move(opened->log);
    for (int at = 0; at < batches; ++at) {
      written_ += append_batch(*log_, records, {1000}, bytes).text();
    }
    ASSERT_TRUE(subject_->run(log_->flush(log_->bounds().end)));
    ASSERT_TRUE(disk().forget_pages(first_segment));
    disk().on_cold_read([this](const std::string&) {
      ++cold_reads_;
      if (subject_->shard().is_current()) ++cold_reads_of_shards_;
    });
  }
  void TearDown() override {
    disk().on_cold_read({});
    subject_->close(log_);
  }

  testing::SimDisk& disk() { return subject_->disk(); }
  std::uint64_t cold_bytes() { return disk().cold_bytes(first_segment); }
  /// What is read ahead has come.
  void settle() { subject_->world().run_for(std::chrono::seconds(1)); }
  /// One answer, as the bytes that it has.
  std::string read(Offset from, std::uint64_t bytes_max, bool at_least_one = false) {
    auto request = everything_from(from);
    request.bytes_max = bytes_max;
    request.at_least_one = at_least_one;
    // Posted, so that the shard can be told from the worker.
    const auto payload =
        subject_->world().run(subject_->shard(), [&] { return log_->read(request); });
    EXPECT_TRUE(payload) << to_string(payload.error());
    const auto before = cold_reads_;
    auto bytes = payload->flatten();  // as a stream sends it
    EXPECT_EQ(cold_reads_, before) << "what is answered is not in memory";
    return bytes ? std::string(bytes->text()) : to_string(bytes.error());
  }
  /// All of it, answer by answer.
  std::string read_on(std::uint64_t bytes_max) {
    std::string all;
    for (Offset from{0}; from < log_->bounds().end;) {
      const auto some = read(from, bytes_max);
      if (some.empty()) break;
      all += some;
      from = from + static_cast<std::int64_t>(some.size() / batch_bytes);
      settle();
    }
    return all;
  }

  std::unique_ptr<FilelogSubject> subject_;
  std::unique_ptr<PartitionLog> log_;
  std::string written_;
  int cold_reads_ = 0;
  int cold_reads_of_shards_ = 0;
};

TEST_F(ColdLogTest, NoShardWaitsForTheDisk) {
  begin({});
  EXPECT_EQ(read_on(50'000), written_);
  EXPECT_GT(cold_reads_, 0);
  EXPECT_EQ(cold_reads_of_shards_, 0);
}

// The index leads to the batch before the one that is sought, where that has several records.
TEST_F(ColdLogTest, NoShardWaitsForTheDiskWhereABatchIsAllOfAnAnswer) {
  begin({.ahead_bytes_max = 100'000}, 3, 150'000, 2);
  std::string all;
  for (const Offset from : {Offset{0}, Offset{2}, Offset{4}}) {
    all += read(from, 310'000);
    settle();  // a part of the next one is there then
  }
  EXPECT_EQ(all, written_);
  EXPECT_GT(cold_reads_, 0);
  EXPECT_EQ(cold_reads_of_shards_, 0);
}

TEST_F(ColdLogTest, WhoReadsOnIsReadAheadOf) {
  begin({});
  EXPECT_FALSE(read({0}, 50'000).empty());
  settle();
  EXPECT_LT(cold_bytes(), written_.size() - 100'000);
  // What follows is there before it is asked for, whatever the window.
  cold_reads_ = 0;
  auto reading = log_->read({.from = {4}, .limit = {INT64_MAX}, .bytes_max = 50'000});
  auto pending = start(subject_->shard(), std::move(reading));
  EXPECT_TRUE(pending.is_ready());
  EXPECT_EQ(cold_reads_, 0);
}

TEST_F(ColdLogTest, NobodyIsReadFurtherAheadOfThanAllowed) {
  begin({.ahead_bytes_max = 200'000});
  std::uint64_t read_bytes = 0;
  for (Offset from{0}; from < Offset{50};) {
    const auto some = read(from, 50'000);
    read_bytes += some.size();
    from = from + static_cast<std::int64_t>(some.size() / batch_bytes);
    settle();
    EXPECT_GE(cold_bytes() + read_bytes + 200'000 + 3 * 4096, written_.size());
  }
  EXPECT_LT(cold_bytes(), written_.size() - read_bytes - 100'000);
}

TEST_F(ColdLogTest, NothingIsReadAheadWhereThatIsTurnedOff) {
  begin({.ahead_bytes_max = 0});
  const auto some = read({0}, 50'000);
  settle();
  EXPECT_GE(cold_bytes() + some.size() + 2 * 4096, written_.size());
}

TEST_F(ColdLogTest, OneReadAtAPlaceIsReadAheadOfOnce) {
  begin({.ahead_bytes_max = 200'000});
  read({70}, 50'000);
  settle();
  const auto cold = cold_bytes();
  read({10}, 50'000);  // another reader
  settle();
  EXPECT_LT(cold_bytes(), cold);
  // The first one's place is known all the same.
  cold_reads_ = 0;
  read({74}, 50'000);
  EXPECT_EQ(cold_reads_, 0);
}

TEST_F(ColdLogTest, OldRecordsTakeNoMoreMemoryThanTheyMay) {
  begin({.answer_bytes_max = 50'000, .ahead_bytes_max = 100'000, .kept_bytes_max = 300'000});
  EXPECT_EQ(read_on(50'000), written_);
  EXPECT_GE(cold_bytes() + 300'000 + 100'000, written_.size());
  EXPECT_GT(written_.size(), 900'000u);
}

TEST_F(ColdLogTest, WhatWasWrittenSinceStaysInMemory) {
  begin({.answer_bytes_max = 50'000, .ahead_bytes_max = 100'000, .kept_bytes_max = 0});
  const auto newest = log_->bounds().end;
  for (int at = 0; at < 10; ++at) {
    written_ += append_batch(*log_, 1, {1000}, value_bytes).text();
  }
  ASSERT_TRUE(subject_->run(log_->flush(log_->bounds().end)));
  EXPECT_EQ(read_on(50'000), written_);
  cold_reads_ = 0;
  EXPECT_GT(read(newest + 1, 80'000).size(), 60'000u);
  EXPECT_EQ(cold_reads_, 0);
}

TEST_F(ColdLogTest, AnAnswerFromTheDiskIsBoundedButForABatch) {
  begin({.answer_bytes_max = 30'000, .ahead_bytes_max = 0});
  EXPECT_EQ(read({0}, 500'000).size() / batch_bytes, 2u);
  ASSERT_TRUE(disk().forget_pages(first_segment));
  EXPECT_EQ(read_on(500'000), written_);
}

TEST_F(ColdLogTest, ABatchLargerThanAnAnswerFromTheDiskIsAnsweredIfItIsWanted) {
  begin({.answer_bytes_max = 5'000, .ahead_bytes_max = 0});
  EXPECT_EQ(read({0}, 500'000), written_.substr(0, written_.size() / 100));
  ASSERT_TRUE(disk().forget_pages(first_segment));
  EXPECT_EQ(read({0}, 9'000), "");
  EXPECT_EQ(read({0}, 9'000, true), written_.substr(0, written_.size() / 100));
}

// ---- whose turn it is ----

class ManualPool final : public BlockingPool {
 public:
  void submit(Job job) override { jobs_.push_back(std::move(job)); }
  std::size_t waiting() const { return jobs_.size(); }
  bool run_one() {
    if (jobs_.empty()) return false;
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    job();
    return true;
  }

 private:
  std::deque<Job> jobs_;
};

class ColdReadsTest : public ::testing::Test {
 protected:
  /// A file that says where it is read.
  std::shared_ptr<File> file(const std::string& name, std::uint64_t bytes) {
    auto opened = disk_.open("/data/" + name, OpenMode::create);
    EXPECT_TRUE(opened);
    EXPECT_TRUE((*opened)->truncate(bytes));
    EXPECT_TRUE((*opened)->sync());
    EXPECT_TRUE(disk_.forget_pages("/data/" + name));
    return *opened;
  }
  static std::shared_ptr<ColdProgress> progress() { return std::make_shared<ColdProgress>(); }
  void SetUp() override {
    disk_.on_cold_read([this](const std::string& path) { happened_.push_back(path); });
  }

  testing::SimWorld world_{1};
  testing::SimDisk& disk_ = world_.add_node("b1").files();
  ManualPool pool_;
  std::vector<std::string> happened_;
};

TEST_F(ColdReadsTest, WhoWaitsComesBeforeWhatIsReadAhead) {
  ColdReads reads(pool_, {.threads_max = 1});
  const auto reader = progress();
  ASSERT_TRUE(reads.read_ahead({file("a", 3 << 20), 0, 3 << 20}, reader));
  ASSERT_TRUE(pool_.run_one());
  reads.waited_for().submit([this] { happened_.emplace_back("waited for"); });
  EXPECT_TRUE(reader->under_way);
  while (pool_.run_one()) {
  }
  EXPECT_EQ(happened_, (std::vector<std::string>{"/data/a", "waited for", "/data/a", "/data/a"}));
  EXPECT_FALSE(reader->under_way);
}

TEST_F(ColdReadsTest, ReadersAreReadAheadOfInTurn) {
  ColdReads reads(pool_, {.threads_max = 1});
  ASSERT_TRUE(reads.read_ahead({file("a", 3 << 20), 0, 3 << 20}, progress()));
  ASSERT_TRUE(reads.read_ahead({file("b", 2 << 20), 0, 2 << 20}, progress()));
  while (pool_.run_one()) {
  }
  EXPECT_EQ(happened_,
            (std::vector<std::string>{"/data/a", "/data/b", "/data/a", "/data/b", "/data/a"}));
}

TEST_F(ColdReadsTest, TheDiskIsWaitedForByAFewThreadsOfThePool) {
  ColdReads reads(pool_, {.threads_max = 2});
  int done = 0;
  for (int at = 0; at < 10; ++at) reads.waited_for().submit([&done] { ++done; });
  EXPECT_EQ(pool_.waiting(), 2u);
  while (pool_.run_one()) {
    EXPECT_LE(pool_.waiting(), 2u);
  }
  EXPECT_EQ(done, 10);
  reads.waited_for().submit([&done] { ++done; });
  EXPECT_EQ(pool_.waiting(), 1u);
  pool_.run_one();
  EXPECT_EQ(done, 11);
}

TEST_F(ColdReadsTest, NoMoreIsOnItsWayThanAllowed) {
  ColdReads reads(pool_, {.ahead_bytes_total_max = 4 << 20});
  EXPECT_TRUE(reads.read_ahead({file("a", 3 << 20), 0, 3 << 20}, progress()));
  const auto refused = progress();
  EXPECT_FALSE(reads.read_ahead({file("b", 2 << 20), 0, 2 << 20}, refused));
  EXPECT_FALSE(refused->under_way);
  while (pool_.run_one()) {
  }
  EXPECT_TRUE(reads.read_ahead({file("b", 2 << 20), 0, 2 << 20}, progress()));
  while (pool_.run_one()) {
  }
}

TEST_F(ColdReadsTest, WhatCannotBeReadAheadEndsIt) {
  ColdReads reads(pool_, {.ahead_bytes_total_max = 4 << 20});
  const auto reader = progress();
  auto broken = file("a", 3 << 20);
  disk_.kill();
  EXPECT_TRUE(reads.read_ahead({broken, 0, 3 << 20}, reader));
  while (pool_.run_one()) {
  }
  EXPECT_FALSE(reader->under_way);
  disk_.restart();
  EXPECT_TRUE(reads.read_ahead({file("b", 4 << 20), 0, 4 << 20}, progress()));
  while (pool_.run_one()) {
  }
}

TEST_F(ColdReadsTest, TheOldestGoesWhereTooMuchWasBroughtIn) {
  ColdReads reads(
      pool_, {.answer_bytes_max = 1 << 18, .ahead_bytes_max = 1 << 18, .kept_bytes_max = 2 << 20});
  const auto one = file("a", 4 << 20);
  ASSERT_TRUE(reads.read_ahead({one, 0, 4 << 20}, progress()));
  while (pool_.run_one()) {
  }
  EXPECT_EQ(reads.kept_bytes(), std::uint64_t{2} << 20);
  EXPECT_EQ(disk_.cold_bytes("/data/a"), std::uint64_t{2} << 20);
  EXPECT_FALSE(one->resident(0, 1));
  EXPECT_TRUE(one->resident(2 << 20, 2 << 20));
}

/// Megabytes of which some are in memory; they go in pairs. Who reads on has the system read two
/// more, when it comes to the first that is not there.
class MegabyteFile final : public File, public CachedFile, public ReadAheadFile {
 public:
  static constexpr std::uint64_t megabyte = 1 << 20;

  explicit MegabyteFile(std::set<std::uint64_t> there) : there_(std::move(there)) {}
  Result<std::size_t> read_at(std::uint64_t, MutableBytes) const override { return 0; }
  Result<> write_at(std::uint64_t, std::span<const Bytes>) override { return {}; }
  Result<> truncate(std::uint64_t) override { return {}; }
  Result<> sync() override { return {}; }
  Result<std::uint64_t> size() const override { return 100 * megabyte; }
  bool resident(std::uint64_t position, std::uint64_t) const noexcept override {
    return there_.contains(position / megabyte);
  }
  const std::string& path() const noexcept override { return path_; }
  Result<> bring_in(std::uint64_t, std::uint64_t) const override { return {}; }
  void forget(std::uint64_t position, std::uint64_t bytes) const noexcept override {
    const auto pair = 2 * megabyte;
    for (auto at = (position + pair - 1) / pair; at < (position + bytes) / pair; ++at) {
      there_.erase(2 * at);
      there_.erase(2 * at + 1);
    }
  }
  Result<std::uint64_t> read_on(std::uint64_t position, std::uint64_t) const override {
    const auto at = position / megabyte;
    passed_.push_back(at);
    const bool needed = !there_.contains(at);
    if (needed) there_.insert({at, at + 1, at + 2});
    return (at + (needed ? 3 : 1)) * megabyte;
  }

  const std::set<std::uint64_t>& there() const { return there_; }
  const std::vector<std::uint64_t>& passed() const { return passed_; }

 private:
  const std::string path_ = "/data/ahead";
  mutable std::set<std::uint64_t> there_;
  mutable std::vector<std::uint64_t> passed_;
};

TEST_F(ColdReadsTest, WhatTheSystemReadsByItselfIsPassedAndGoesInItsTurn) {
  ColdReads reads(
      pool_, {.answer_bytes_max = 1 << 18, .ahead_bytes_max = 1 << 18, .kept_bytes_max = 1 << 20});
  const auto one = std::make_shared<MegabyteFile>(std::set<std::uint64_t>{7, 8, 9});
  // In two goes: what the first had the system read is known to the second.
  const auto reader = progress();
  for (const std::uint64_t from : {0, 5}) {
    ASSERT_TRUE(reads.read_ahead({one, from << 20, 5 << 20}, reader));
    while (pool_.run_one()) {
    }
  }
  // 7 and 8 were there, but so close behind that they cannot be told from what the system has read.
  EXPECT_EQ(one->passed(), (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(one->there(), (std::set<std::uint64_t>{8, 9}));
}

}  // namespace
}  // namespace millrace::filelog
