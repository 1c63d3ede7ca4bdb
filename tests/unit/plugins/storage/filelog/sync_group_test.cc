// Many logs that have something to bring to disk at once.
#include "plugins/storage/filelog/sync_group.h"

#include <algorithm>

#include "filelog_subject.h"

namespace millrace::filelog {
namespace {

using testing::append_batch;
using testing::everything_from;
using testing::read_text;

class SyncGroupTest : public ::testing::Test {
 protected:
  struct Told {
    int alone = 0;
    int written = 0;
    int finished = 0;
  };

  SyncWork work(Result<> writing = {}) {
    return {.write =
                [this, writing](bool durably) {
                  ++(durably ? told_.alone : told_.written);
                  return writing;
                },
            .finish = [this]() -> Result<> {
              ++told_.finished;
              return {};
            },
            .names = false};
  }
  std::vector<Result<>> run_all(std::vector<SyncWork> works) {
    std::vector<Pending<>> pending;
    for (auto& one : works) pending.push_back(start(subject_.shard(), syncs_.run(std::move(one))));
    subject_.run_until([&] {
      return std::ranges::all_of(pending, [](const auto& one) { return one.is_ready(); });
    });
    std::vector<Result<>> results;
    for (auto& one : pending) results.push_back(one.await_resume());
    return results;
  }
  std::vector<SyncWork> many(std::size_t count) {
    std::vector<SyncWork> works;
    for (std::size_t at = 0; at < count; ++at) works.push_back(work());
    return works;
  }
  std::ptrdiff_t syncs_of_all() {
    return std::ranges::count_if(subject_.world().trace().lines(), [](const std::string& line) {
      return line.contains("sync all /data");
    });
  }

  FilelogSubject subject_;
  SyncGroup syncs_{subject_.disk(), subject_.node().workers(), "/data"};
  Told told_;
};

TEST_F(SyncGroupTest, AFewGoByThemselves) {
  for (const auto& result : run_all(many(SyncGroup::one_by_one_max))) EXPECT_TRUE(result);
  EXPECT_EQ(told_.alone, 16);
  EXPECT_EQ(told_.written, 0);
  EXPECT_EQ(syncs_of_all(), 0);
}

TEST_F(SyncGroupTest, ManyShareASyncOfTheDisk) {
  for (const auto& result : run_all(many(500))) EXPECT_TRUE(result);
  EXPECT_GE(told_.written, 480);
  EXPECT_EQ(told_.finished, told_.written);
  EXPECT_EQ(told_.alone + told_.written, 500);
  EXPECT_LE(syncs_of_all(), 2);
}

TEST_F(SyncGroupTest, WhoFailsFailsAlone) {
  auto works = many(100);
  works[50] = work(Error{Errc::io, "no room"});
  const auto results = run_all(std::move(works));
  for (std::size_t at = 0; at < results.size(); ++at) {
    EXPECT_EQ(results[at].has_value(), at != 50) << at;
  }
  EXPECT_EQ(told_.finished, told_.written - 1);
}

TEST_F(SyncGroupTest, EachGoesByItselfWhereTheDiskAsAWholeCannotBeSynced) {
  subject_.disk().fail_syncs(true);
  for (const auto& result : run_all(many(100))) EXPECT_TRUE(result);
  EXPECT_EQ(told_.alone, 100);
  EXPECT_EQ(told_.finished, 0);
}

TEST_F(SyncGroupTest, NamesAreSyncedToo) {
  auto works = many(100);
  works[99].names = true;
  for (const auto& result : run_all(std::move(works))) EXPECT_TRUE(result);
  EXPECT_GE(syncs_of_all(), 2);
}

/// Many logs of one storage, over seeds.
class ManyLogsTest : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static constexpr int logs_count = 60;

  static TopicPartition partition(int number) { return {"many", number}; }
  std::vector<std::unique_ptr<PartitionLog>> open_all() {
    std::vector<std::unique_ptr<PartitionLog>> logs;
    for (int at = 0; at < logs_count; ++at) {
      auto opened = subject_.open({}, partition(at));
      EXPECT_TRUE(opened) << to_string(opened.error());
      logs.push_back(std::move(opened->log));
    }
    return logs;
  }
  /// Of every log at once.
  template <class F>
  void all_at_once(std::vector<std::unique_ptr<PartitionLog>>& logs, F make) {
    std::vector<Pending<>> pending;
    for (auto& log : logs) pending.push_back(start(subject_.shard(), make(*log)));
    subject_.run_until([&] {
      return std::ranges::all_of(pending, [](const auto& one) { return one.is_ready(); });
    });
    for (auto& one : pending) EXPECT_TRUE(one.await_resume());
  }

  FilelogSubject subject_{GetParam()};
};

TEST_P(ManyLogsTest, WhatWasFlushedAndKeptBesideTogetherIsThereAfterACrash) {
  subject_.lock();
  auto logs = open_all();
  std::vector<std::string> appended;
  for (auto& log : logs) appended.emplace_back(append_batch(*log, 3).text());
  all_at_once(logs, [](PartitionLog& log) {
    return log.put_aux(AuxKind::producer_snapshot, {3}, Buffer::copy_of("snapshot"));
  });
  all_at_once(logs, [](PartitionLog& log) { return log.flush({3}); });
  subject_.node().crash();
  for (auto& log : logs) (void)subject_.run(log->close());
  logs.clear();
  subject_.node().restart();
  subject_.restart();
  subject_.lock();
  logs = open_all();
  for (int at = 0; at < logs_count; ++at) {
    auto& log = *logs[static_cast<std::size_t>(at)];
    EXPECT_EQ(read_text(subject_, log, everything_from({0})),
              appended[static_cast<std::size_t>(at)]);
    const auto kept = subject_.run(log.aux(AuxKind::producer_snapshot));
    ASSERT_TRUE(kept);
    ASSERT_EQ(kept->size(), 1u);
    EXPECT_EQ(kept->front().value.text(), "snapshot");
  }
  all_at_once(logs, [](PartitionLog& log) { return log.close(); });
}

TEST_P(ManyLogsTest, ClosedTogetherTheyAreOpenedWithoutACheck) {
  subject_.lock();
  auto logs = open_all();
  for (auto& log : logs) append_batch(*log, 3);
  all_at_once(logs, [](PartitionLog& log) { return log.close(); });
  logs.clear();
  subject_.close_storage();
  subject_.node().crash();
  subject_.node().restart();
  subject_.restart();
  subject_.lock();
  for (int at = 0; at < logs_count; ++at) {
    auto opened = subject_.open({}, partition(at));
    ASSERT_TRUE(opened) << to_string(opened.error());
    EXPECT_EQ(opened->checked_from, Offset{3});
    EXPECT_EQ(opened->log->bounds().end, Offset{3});
    subject_.close(opened->log);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ManyLogsTest, ::testing::Range<std::uint64_t>(1, 11));

}  // namespace
}  // namespace millrace::filelog
