// Batches written in place are those that the SDK's builder makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "kernel/streams/stream_batch.h"

namespace millrace::kernel {
namespace {

struct Written {
  Timestamp timestamp;
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
};

std::optional<Bytes> bytes_of(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return as_bytes(*text);
}

template <class To>
void add(To& to, const Written& record) {
  std::vector<HeaderView> headers;
  for (const auto& [key, value] : record.headers) headers.push_back({key, bytes_of(value)});
  to.add(record.timestamp, bytes_of(record.key), bytes_of(record.value), headers);
}

class RandomRecords {
 public:
  Written next() {
    Written record{
        {static_cast<std::int64_t>(chance_() % 2'000'000) - 1'000'000}, maybe(), maybe(), {}};
    for (auto headers = chance_() % 3; headers > 0; --headers) {
      record.headers.emplace_back(text(), maybe());
    }
    return record;
  }

 private:
  std::string text() { return std::string(chance_() % 200, static_cast<char>(chance_())); }
  std::optional<std::string> maybe() {
    if (chance_() % 4 == 0) return std::nullopt;
    return text();
  }
  std::mt19937 chance_{11};
};

std::string built(const std::vector<Written>& records) {
  BatchBuilder builder({.producer_id = 9, .producer_epoch = 2, .base_sequence = 77});
  for (const auto& record : records) add(builder, record);
  return std::string(std::move(builder).finish().value().text());
}

TEST(StreamBatchTest, IsTheBuildersToTheLastByte) {
  RandomRecords chance;
  for (const int count : {1, 2, 63, 64, 65, 3000}) {
    std::vector<Written> records;
    StreamBatch batch;
    for (int i = 0; i < count; ++i) {
      records.push_back(chance.next());
      add(batch, records.back());
    }
    EXPECT_EQ(batch.records(), count);
    const auto bytes = batch.bytes();
    const auto finished = batch.finish({9, 2, 77});
    EXPECT_EQ(finished.size(), bytes);
    EXPECT_EQ(finished.text(), built(records));
    EXPECT_TRUE(verify_crc(finished));
    EXPECT_EQ(batch.records(), 0) << "it begins anew";
  }
}

TEST(StreamBatchTest, RecordsAreTakenBack) {
  RandomRecords chance;
  std::vector<Written> kept;
  StreamBatch batch;
  for (int round = 0; round < 50; ++round) {
    const auto mark = batch.mark();
    for (int i = 0; i < 5; ++i) add(batch, chance.next());
    batch.rewind(mark);
    kept.push_back(chance.next());
    add(batch, kept.back());
  }
  EXPECT_EQ(batch.finish({9, 2, 77}).text(), built(kept));
}

}  // namespace
}  // namespace millrace::kernel
