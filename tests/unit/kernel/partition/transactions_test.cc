// What a log with transactions leaves beside it, compared with what Kafka left beside the same
// log; and what readers are told of it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "kernel/partition/payload_reader.h"
#include "kernel/partition/transaction_marker.h"
#include "tests/unit/kernel/partition/partition_fixture.h"

namespace millrace::kernel {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> files_of(const fs::path& folder, std::string_view suffix) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().ends_with(suffix)) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

Offset base_of(const fs::path& file) { return {std::stoll(file.stem().string())}; }

// What a partition does when it replays a log.
struct Replayed {
  ProducerStates producers;
  AbortedTransactions aborted;
  Offset end{0};

  void add(const std::string& log) {
    const Payload payload(Buffer::copy_of(log));
    ASSERT_TRUE(for_each_batch(payload, [this, &log](const FoundBatch& batch) {
      end = batch.header.last_offset() + 1;
      if (!batch.header.control()) {
        producers.append(batch.header, {1000});
        return true;
      }
      const auto bytes = std::string_view(log).substr(batch.position, batch.header.total_bytes());
      const auto marker = read_marker(batch.header, as_bytes(bytes));
      EXPECT_TRUE(marker && *marker);
      if (!marker || !*marker) return false;
      if (const auto row = producers.end_transaction(batch.header, **marker, {1000})) {
        aborted.add(*row);
      }
      return true;
    }));
  }
};

/// Folders with transactions of which nothing has been compacted away.
std::vector<std::string> golden_folders() {
  std::vector<std::string> folders;
  const fs::path root(MILLRACE_GOLDEN_DIR "/segments");
  for (const auto& release : fs::directory_iterator(root)) {
    if (!release.is_directory()) continue;
    for (const auto& topic : fs::directory_iterator(release.path())) {
      if (!topic.path().filename().string().starts_with("v2-txn")) continue;
      folders.push_back(fs::relative(topic.path(), root).string());
    }
  }
  return folders;
}

class GoldenTransactionsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenTransactionsTest, LeaveTheSameFilesAsKafka) {
  const fs::path folder = fs::path(MILLRACE_GOLDEN_DIR "/segments") / GetParam();
  const auto logs = files_of(folder, ".log");
  ASSERT_FALSE(logs.empty());
  Replayed replayed;
  std::size_t rows = 0;
  for (const auto& log : logs) {
    const auto base = base_of(log);
    const auto snapshot = fs::path(log).replace_extension(".snapshot");
    if (fs::exists(snapshot)) {
      EXPECT_EQ(replayed.producers.snapshot().text(), content_of(snapshot)) << snapshot;
    }
    replayed.add(content_of(log));
    const auto index = fs::path(log).replace_extension(".txnindex");
    const auto expected = fs::exists(index) ? content_of(index) : "";
    EXPECT_EQ(replayed.aborted.encode(base, replayed.end).text(), expected) << index;
    AbortedTransactions read;
    ASSERT_TRUE(read.add_all(as_bytes(expected)));
    rows += read.rows().size();
  }
  EXPECT_EQ(replayed.aborted.rows().size(), rows);
  EXPECT_GT(rows, 0U);
  const auto last = files_of(folder, ".snapshot").back();
  ASSERT_EQ(base_of(last), replayed.end);
  // Before 2.0 a marker left the time of the last record as it was.
  if (!GetParam().starts_with("kafka-1.")) {
    EXPECT_EQ(replayed.producers.snapshot().text(), content_of(last));
  }
}

INSTANTIATE_TEST_SUITE_P(Releases, GoldenTransactionsTest, ::testing::ValuesIn(golden_folders()));

TEST(AbortedTransactionsTest, AnswersThoseThatReachIntoARange) {
  AbortedTransactions aborted;
  aborted.add({.producer_id = 1, .first = {0}, .last = {10}, .last_stable = {5}});
  aborted.add({.producer_id = 2, .first = {5}, .last = {12}, .last_stable = {13}});
  aborted.add({.producer_id = 1, .first = {20}, .last = {30}, .last_stable = {31}});
  const auto producers = [&aborted](std::int64_t from, std::int64_t limit) {
    std::vector<std::int64_t> found;
    for (const auto& one : aborted.within({from}, {limit})) found.push_back(one.producer_id);
    return found;
  };
  EXPECT_THAT(producers(0, 5), ElementsAre(1));
  EXPECT_THAT(producers(0, 6), ElementsAre(1, 2));
  EXPECT_THAT(producers(11, 20), ElementsAre(2));
  EXPECT_THAT(producers(11, 21), ElementsAre(2, 1));
  EXPECT_THAT(producers(31, 40), IsEmpty());
}

TEST(AbortedTransactionsTest, RefusesAFileThatIsNoIndex) {
  AbortedTransactions aborted;
  aborted.add({.producer_id = 1, .first = {0}, .last = {10}, .last_stable = {11}});
  aborted.add({.producer_id = 1, .first = {12}, .last = {14}, .last_stable = {15}});
  const std::string file(aborted.encode({0}, {20}).text());
  ASSERT_EQ(file.size(), 68U);
  for (std::size_t size = 1; size < file.size(); ++size) {
    if (size == 34) continue;
    EXPECT_FALSE(AbortedTransactions().add_all(as_bytes(file.substr(0, size)))) << size;
  }
  EXPECT_FALSE(AbortedTransactions().add_all(as_bytes(file.substr(34) + file.substr(0, 34))));
  EXPECT_FALSE(AbortedTransactions().add_all(as_bytes(std::string(34, '\xa5'))));
}

class TransactionsTest : public testing::PartitionFixture {
 protected:
  /// What a coordinator appends.
  void end(std::int64_t producer, bool commit) {
    const std::string key{'\0', '\0', '\0', commit ? '\1' : '\0'};
    const std::string value(6, '\0');
    BatchBuilder builder({.producer_id = producer,
                          .producer_epoch = 0,
                          .transactional = true,
                          .control = true,
                          .base_offset = storage.stored.end()});
    builder.add({1000}, as_bytes(key), as_bytes(value));
    store(*std::move(builder).finish());
  }
  void send(std::int64_t producer, std::int32_t sequence) {
    BatchBuilder builder({.producer_id = producer,
                          .producer_epoch = 0,
                          .base_sequence = sequence,
                          .transactional = true,
                          .base_offset = storage.stored.end()});
    builder.add({1000}, std::nullopt, as_bytes("value"));
    store(*std::move(builder).finish());
  }
  void store(const Buffer& batch) {
    storage.stored.batches.push_back({batch, *read_batch_header(batch)});
  }
  PartitionFetched fetch_committed(std::int64_t from) {
    return fetch(
        from, {.isolation = Isolation::read_committed, .bytes_max = 1 << 20, .at_least_one = true});
  }
};

TEST_F(TransactionsTest, ReadersOfCommittedRecordsStopAtTheFirstOpenTransaction) {
  send(1, 0);  // 0
  send(2, 0);  // 1, open
  end(1, false);
  send(1, 1);  // 3, open
  open();
  EXPECT_EQ(partition->offsets().last_stable, Offset{1});
  const auto fetched = fetch_committed(0);
  EXPECT_EQ(fetched.last_stable, Offset{1});
  ASSERT_TRUE(fetched.aborted);
  ASSERT_EQ(fetched.aborted->size(), 1U);
  EXPECT_EQ(fetched.aborted->front().producer_id, 1);
  EXPECT_EQ(fetched.aborted->front().first_offset, Offset{0});
  EXPECT_GT(fetch(0).records.size(), fetched.records.size());
}

TEST_F(TransactionsTest, TheIndexOfAbortedTransactionsIsStoredBySegmentAndReadAgain) {
  send(1, 0);
  end(1, false);
  storage.stored.segment_bases.push_back(storage.stored.end());
  send(1, 1);
  end(1, false);
  send(1, 2);
  open();
  close();
  auto& files = storage.stored.aux[AuxKind::aborted_transactions];
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files.begin()->first, Offset{0});
  EXPECT_EQ(files.rbegin()->first, Offset{2});
  open();
  EXPECT_EQ(partition->offsets().last_stable, Offset{4});
  EXPECT_EQ(fetch_committed(0).aborted->size(), 2U);
  EXPECT_EQ(fetch_committed(2).aborted->size(), 1U);
  close();
  files[Offset{0}] = Buffer::copy_of("garbage");
  open();
  EXPECT_EQ(fetch_committed(0).aborted->size(), 2U);
  close();
  EXPECT_EQ(files[Offset{0}].size(), 34U);
}

// Rows of markers that a crash has taken with it.
TEST_F(TransactionsTest, RowsBehindTheLastSnapshotAreForgottenInTheFilesToo) {
  send(1, 0);
  end(1, false);
  open();
  close();
  ASSERT_EQ(storage.stored.aux[AuxKind::aborted_transactions].size(), 1U);
  storage.stored.batches.pop_back();
  open();
  EXPECT_TRUE(storage.stored.aux[AuxKind::aborted_transactions].empty());
  EXPECT_TRUE(fetch_committed(0).aborted->empty());
  EXPECT_EQ(partition->offsets().last_stable, Offset{0});
}

}  // namespace
}  // namespace millrace::kernel
