// What a whole partition does with producers is in produce_test.cc; here are the snapshot's bytes.
#include "kernel/partition/producer_state.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include <millrace/bytes.h>

namespace millrace::kernel {
namespace {

namespace fs = std::filesystem;

BatchHeader header(std::int64_t producer, std::int32_t sequence, std::int64_t offset,
                   std::int32_t records = 1) {
  return {.base_offset = {offset},
          .last_offset_delta = records - 1,
          .max_timestamp = {1'700'000'000'000},
          .producer_id = producer,
          .producer_epoch = 2,
          .base_sequence = sequence,
          .record_count = records};
}

std::vector<fs::path> golden_snapshots() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(MILLRACE_GOLDEN_DIR "/segments")) {
    if (entry.path().extension() == ".snapshot") found.push_back(entry.path());
  }
  return found;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

/// Kafka writes them in any order.
std::multiset<std::string> rows_of(std::string_view snapshot) {
  std::multiset<std::string> rows;
  for (std::size_t at = 10; at < snapshot.size(); at += 46) rows.emplace(snapshot.substr(at, 46));
  return rows;
}

TEST(ProducerStatesTest, KeepsEachProducersLastBatchInASnapshot) {
  ProducerStates before;
  before.append(header(5, 10, 100, 3), {7000});
  before.append(header(5, 13, 103, 2), {8000});
  before.append(header(4, 2147483646, 105, 4), {9000});
  ProducerStates after;
  ASSERT_TRUE(after.restore(before.snapshot(), {9000}));
  EXPECT_EQ(after.producers(), 2U);
  const auto last = after.check(header(5, 13, 0, 2));
  ASSERT_TRUE(std::holds_alternative<ProducerStates::Duplicate>(last));
  EXPECT_EQ(std::get<ProducerStates::Duplicate>(last).base_offset, Offset{103});
  EXPECT_TRUE(std::holds_alternative<ProducerStates::Refused>(after.check(header(5, 10, 0, 3))));
  // A batch whose sequences go on behind 2^31-1.
  const auto wrapped = after.check(header(4, 2147483646, 0, 4));
  ASSERT_TRUE(std::holds_alternative<ProducerStates::Duplicate>(wrapped));
  EXPECT_TRUE(std::holds_alternative<ProducerStates::Accepted>(after.check(header(4, 2, 0))));
}

TEST(ProducerStatesTest, WritesKafkasFormat) {
  ProducerStates states;
  states.append(header(1000, 4, 50, 3), {1'700'000'000'000});
  const auto snapshot = states.snapshot();
  ASSERT_EQ(snapshot.size(), 10U + 46U);
  const auto* at = snapshot.data();
  EXPECT_EQ(load_be<std::int16_t>(at), 1);
  EXPECT_EQ(load_be<std::uint32_t>(at + 2), crc32c(snapshot.bytes().subspan(6)));
  EXPECT_EQ(load_be<std::int32_t>(at + 6), 1);
  EXPECT_EQ(load_be<std::int64_t>(at + 10), 1000);
  EXPECT_EQ(load_be<std::int16_t>(at + 18), 2);
  EXPECT_EQ(load_be<std::int32_t>(at + 20), 6);
  EXPECT_EQ(load_be<std::int64_t>(at + 24), 52);
  EXPECT_EQ(load_be<std::int32_t>(at + 32), 2);
  EXPECT_EQ(load_be<std::int64_t>(at + 36), 1'700'000'000'000);
  EXPECT_EQ(load_be<std::int32_t>(at + 44), -1);
  EXPECT_EQ(load_be<std::int64_t>(at + 48), -1);
}

TEST(ProducerStatesTest, ReadsWhatKafkaWroteAndWritesItAgain) {
  const auto snapshots = golden_snapshots();
  ASSERT_FALSE(snapshots.empty());
  std::size_t producers = 0;
  for (const auto& path : snapshots) {
    const auto content = content_of(path);
    ProducerStates states;
    const auto restored = states.restore(as_bytes(content), {1000});
    EXPECT_TRUE(restored) << path << ": " << restored.error().detail;
    producers += states.producers();
    EXPECT_EQ(rows_of(states.snapshot().text()), rows_of(content)) << path;
  }
  EXPECT_GT(producers, 0U);
}

TEST(ProducerStatesTest, RefusesEveryProperPrefixAndEveryChangedByte) {
  ProducerStates states;
  states.append(header(1, 0, 0), {1000});
  states.append(header(2, 0, 1), {1000});
  const auto snapshot = states.snapshot();
  for (std::size_t size = 0; size < snapshot.size(); ++size) {
    EXPECT_FALSE(states.restore(snapshot.slice(0, size), {1000})) << size;
    EXPECT_EQ(states.producers(), 0U);
  }
  for (std::size_t at = 0; at < snapshot.size(); ++at) {
    std::string changed(snapshot.text());
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(states.restore(as_bytes(changed), {1000})) << at;
  }
}

}  // namespace
}  // namespace millrace::kernel
