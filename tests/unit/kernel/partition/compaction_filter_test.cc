// Each rule of what compaction keeps, on single batches.
#include "kernel/partition/compaction_filter.h"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/bytes.h>

#include "kernel/partition/payload_reader.h"
#include "tests/unit/kernel/partition/test_storage.h"

namespace millrace::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t now_ms = 1'700'000'000'000;
constexpr std::int64_t retention_ms = 60'000;

struct Rec {
  std::string key;
  std::optional<std::string> value = "v";
  std::int64_t time = 1000;
  bool operator==(const Rec&) const = default;
};
using Recs = std::vector<std::pair<std::int64_t, Rec>>;  // by offset

class CompactionFilterTest : public ::testing::Test {
 protected:
  CompactionFilterTest() {
    for (const auto& codec : codec_objects_) opening.codecs.add(*codec);
    auto made = OffsetMap::make({}, 1 << 16, 0.9, 1000);
    map.emplace(*std::move(made));
  }

  Buffer batch(std::int64_t base, const std::vector<Rec>& records,
               BatchBuilder::Settings settings = {}) const {
    settings.base_offset = {base};
    BatchBuilder builder(settings);
    for (const auto& record : records) {
      const auto value = record.value ? std::optional(as_bytes(*record.value)) : std::nullopt;
      const HeaderView header{"header", as_bytes("x")};
      builder.add({record.time}, as_bytes(record.key), value, {&header, 1});
    }
    return *std::move(builder).finish(opening.codecs);
  }
  static BatchBuilder::Settings producer(std::int64_t id, bool transactional = false) {
    return {
        .producer_id = id, .producer_epoch = 0, .base_sequence = 0, .transactional = transactional};
  }
  static Buffer marker(std::int64_t base, std::int64_t producer, bool commit) {
    const auto made = write_marker(producer, 0, {commit, 5}, {1000});
    return moved(made, base);
  }
  static Buffer moved(const Buffer& batch, std::int64_t base) {
    MutableBuffer copy(batch.size());
    copy.append(batch);
    store_be(copy.data(), base);
    return std::move(copy).freeze();
  }
  Buffer set(std::int8_t magic, const Recs& records, CompressionId codec) const {
    MessageSetBuilder builder({.magic = magic, .compression = codec});
    for (const auto& [offset, record] : records) {
      const auto value = record.value ? std::optional(as_bytes(*record.value)) : std::nullopt;
      builder.add({offset}, {record.time}, as_bytes(record.key), value);
    }
    return *std::move(builder).finish(opening.codecs);
  }

  void put(const std::string& key, std::int64_t offset) { map->put(as_bytes(key), {offset}); }
  CompactedBatch compact(const Buffer& batch) {
    auto left = compact_batch(batch, rules, opening, transactions, *map);
    EXPECT_TRUE(left) << left.error().detail;
    return left ? *std::move(left) : CompactedBatch{};
  }
  static Buffer bytes_of(const CompactedBatch& left) {
    Payload payload(left.parts->header);
    payload.add(left.parts->body);
    return *payload.flatten();
  }
  BatchHeader header_of(const CompactedBatch& left) {
    EXPECT_TRUE(left.parts);
    const auto bytes = bytes_of(left);
    EXPECT_TRUE(verify_crc(bytes));
    const auto header = read_batch_header(bytes);
    EXPECT_TRUE(header);
    EXPECT_EQ(header->total_bytes(), bytes.size());
    EXPECT_EQ(header->base_offset, left.parts->base_offset);
    EXPECT_EQ(header->last_offset(), left.parts->last_offset);
    EXPECT_EQ(header->max_timestamp, left.parts->max_timestamp);
    return *header;
  }
  Recs records_of(const CompactedBatch& left) {
    Recs records;
    if (!left.parts) return records;
    const auto header = header_of(left);
    const auto section = open_records(header, bytes_of(left), opening.codecs, 1 << 20);
    EXPECT_TRUE(for_each_record(header, *section, [&records](const RecordView& record) {
      Rec rec{.key = std::string(as_text(*record.key)), .value = {}, .time = record.timestamp.ms};
      if (record.value) rec.value = as_text(*record.value);
      EXPECT_EQ(record.headers.size(), 1);
      records.emplace_back(record.offset.value, rec);
      return true;
    }));
    return records;
  }
  Recs old_records_of(const CompactedBatch& left) {
    Recs records;
    if (!left.parts) return records;
    EXPECT_TRUE(left.parts->header.empty());
    for (auto rest = left.parts->body; !rest.empty();) {
      const auto head = read_entry_head(rest);
      for (const auto& one : *open_legacy_entry(rest, opening.codecs, 1 << 20)) {
        Rec rec{.key = std::string(one.key->text()), .value = {}, .time = one.timestamp.ms};
        if (one.value) rec.value = one.value->text();
        records.emplace_back(one.offset.value, rec);
      }
      rest = rest.slice(head->total_bytes);
    }
    return records;
  }

  BatchOpening opening;
  std::optional<OffsetMap> map;
  TransactionWalk transactions{{}, {0}};
  CompactionRules rules{
      .now = {now_ms}, .delete_retention_ms = retention_ms, .mapped = {1000}, .producers = {}};

 private:
  std::unique_ptr<Codec> codec_objects_[2] = {
      std::make_unique<testing::MarkCodec>(CompressionId::gzip),
      std::make_unique<testing::MarkCodec>(CompressionId::lz4)};
};

TEST_F(CompactionFilterTest, OnlyTheNewestRecordOfAKeyStays) {
  put("a", 12);
  put("b", 11);
  const auto left =
      compact(batch(10, {{"a", "1", 500}, {"b", "2", 700}, {"a", "3", 300}, {"c", "4", 200}}));
  EXPECT_TRUE(left.changed);
  EXPECT_EQ(left.removed, 1);
  // A key that the map has not is of the clean part alone.
  EXPECT_EQ(records_of(left),
            (Recs{{11, {"b", "2", 700}}, {12, {"a", "3", 300}}, {13, {"c", "4", 200}}}));
  const auto header = header_of(left);
  EXPECT_EQ(header.base_offset, Offset{10});
  EXPECT_EQ(header.last_offset_delta, 3);
  EXPECT_EQ(header.record_count, 3);
  EXPECT_EQ(header.max_timestamp, Timestamp{700});
}

TEST_F(CompactionFilterTest, TheLastOffsetStaysWhenItsRecordGoes) {
  put("a", 99);
  put("b", 10);
  const auto left = compact(batch(10, {{"b", "1", 500}, {"a", "2", 700}, {"a", "3", 900}}));
  EXPECT_EQ(records_of(left), (Recs{{10, {"b", "1", 500}}}));
  EXPECT_EQ(header_of(left).last_offset_delta, 2);
  EXPECT_EQ(header_of(left).max_timestamp, Timestamp{500});
}

TEST_F(CompactionFilterTest, ABatchOfWhichNothingGoesStaysByteForByte) {
  put("a", 10);
  const auto before = batch(10, {{"a"}, {"b"}}, {.compression = CompressionId::gzip});
  const auto left = compact(before);
  EXPECT_FALSE(left.changed);
  EXPECT_EQ(bytes_of(left).text(), before.text());
}

TEST_F(CompactionFilterTest, ABatchOfWhichAllGoesIsGone) {
  put("a", 50);
  const auto left = compact(batch(10, {{"a"}, {"a"}}));
  EXPECT_FALSE(left.parts);
  EXPECT_TRUE(left.changed);
  EXPECT_EQ(left.removed, 2);
}

TEST_F(CompactionFilterTest, EachBatchKeepsItsCodec) {
  put("a", 50);
  for (const auto codec : {CompressionId::none, CompressionId::gzip, CompressionId::lz4}) {
    const auto left = compact(batch(10, {{"a"}, {"b"}}, {.compression = codec}));
    EXPECT_EQ(header_of(left).compression(), codec);
    EXPECT_EQ(records_of(left), (Recs{{11, {"b"}}}));
  }
}

TEST_F(CompactionFilterTest, WhatTheMapDoesNotKnowYetStays) {
  put("a", 50);
  rules.mapped = {11};
  EXPECT_EQ(records_of(compact(batch(10, {{"a"}, {"a"}}))), (Recs{{11, {"a"}}}));
  EXPECT_FALSE(compact(batch(11, {{"a"}, {"b", std::nullopt}})).changed);
}

TEST_F(CompactionFilterTest, RecordsWithoutAKeyGo) {
  BatchBuilder builder({.base_offset = {10}});
  builder.add({1}, std::nullopt, as_bytes("v"));
  EXPECT_FALSE(compact(*std::move(builder).finish()).parts);
}

TEST_F(CompactionFilterTest, TombstonesStayUntilTheirDeleteHorizon) {
  put("a", 10);
  put("b", 11);
  auto left = compact(batch(10, {{"a", std::nullopt, 500}, {"b", "2", 700}}));
  ASSERT_TRUE(left.changed);
  const Recs both{{10, {"a", std::nullopt, 500}}, {11, {"b", "2", 700}}};
  EXPECT_EQ(records_of(left), both);
  EXPECT_TRUE(header_of(left).has_delete_horizon());
  EXPECT_EQ(header_of(left).base_timestamp, Timestamp{now_ms + retention_ms});
  EXPECT_EQ(header_of(left).max_timestamp, Timestamp{700});

  // It is set once.
  rules.now.ms += retention_ms - 1;
  const auto again = compact(bytes_of(left));
  EXPECT_FALSE(again.changed);
  rules.now.ms += 1;
  left = compact(bytes_of(left));
  EXPECT_EQ(records_of(left), (Recs{{11, {"b", "2", 700}}}));
  EXPECT_TRUE(header_of(left).has_delete_horizon());
  EXPECT_FALSE(compact(bytes_of(left)).changed);
}

TEST_F(CompactionFilterTest, ATombstoneThatIsSupersededGoesAtOnce) {
  put("a", 50);
  EXPECT_FALSE(compact(batch(10, {{"a", std::nullopt}})).parts);
}

TEST_F(CompactionFilterTest, ADeleteHorizonNeverRunsOver) {
  rules.delete_retention_ms = std::numeric_limits<std::int64_t>::max();
  put("a", 10);
  const auto left = compact(batch(10, {{"a", std::nullopt, 500}}));
  EXPECT_EQ(header_of(left).base_timestamp.ms, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(records_of(left), (Recs{{10, {"a", std::nullopt, 500}}}));
}

TEST_F(CompactionFilterTest, TheLastBatchOfAProducerStaysAsAnEmptyOne) {
  put("a", 50);
  rules.producers = {{7, {.epoch = 0, .last_offset = {11}}}};
  const auto left = compact(batch(10, {{"a"}, {"a", "v", 900}},
                                  {.compression = CompressionId::gzip,
                                   .producer_id = 7,
                                   .producer_epoch = 0,
                                   .base_sequence = 40}));
  const auto header = header_of(left);
  EXPECT_EQ(header.record_count, 0);
  EXPECT_EQ(header.total_bytes(), batch_header_bytes);
  EXPECT_EQ(header.last_offset(), Offset{11});
  EXPECT_EQ(header.base_sequence, 40);
  EXPECT_EQ(header.producer_id, 7);
  EXPECT_EQ(header.max_timestamp, Timestamp{1000});
  EXPECT_EQ(header.compression(), CompressionId::none);

  EXPECT_FALSE(compact(bytes_of(left)).changed);
  rules.producers[7].last_offset = {60};  // it has sent more
  EXPECT_FALSE(compact(bytes_of(left)).parts);
  rules.producers.clear();  // it is forgotten
  EXPECT_FALSE(compact(bytes_of(left)).parts);
}

TEST_F(CompactionFilterTest, RecordsOfAbortedTransactionsGo) {
  transactions = TransactionWalk({{.producer_id = 7, .first = {10}, .last = {12}}}, {0});
  EXPECT_FALSE(compact(batch(10, {{"a"}}, producer(7, true))).parts);
  EXPECT_EQ(records_of(compact(batch(11, {{"a"}}, producer(8, true)))), (Recs{{11, {"a"}}}));
  EXPECT_FALSE(compact(marker(12, 7, false)).changed);
  // The producer's next transaction was committed.
  EXPECT_EQ(records_of(compact(batch(13, {{"a"}}, producer(7, true)))), (Recs{{13, {"a"}}}));
  EXPECT_THAT(transactions.spent(), IsEmpty());
}

TEST_F(CompactionFilterTest, AMarkerStaysWhileThereIsSomethingThatItEnds) {
  for (const bool commit : {true, false}) {
    std::vector<AbortedRow> rows;
    if (!commit) rows.push_back({.producer_id = 7, .first = {10}, .last = {12}});
    transactions = TransactionWalk(rows, {0});
    compact(batch(10, {{"a"}}, producer(7, true)));
    EXPECT_FALSE(compact(marker(12, 7, commit)).changed);
  }
}

TEST_F(CompactionFilterTest, AMarkerThatEndsNothingGoesAfterItsDeleteHorizon) {
  for (const bool commit : {true, false}) {
    rules.now = {now_ms};
    transactions = TransactionWalk({}, {0});
    auto left = compact(marker(12, 7, commit));
    EXPECT_TRUE(left.changed);
    EXPECT_TRUE(header_of(left).has_delete_horizon());
    EXPECT_TRUE(header_of(left).control());
    const auto kept = read_marker(header_of(left), bytes_of(left));
    ASSERT_TRUE(kept && *kept);
    EXPECT_EQ((**kept).commit, commit);
    EXPECT_EQ((**kept).coordinator_epoch, 5);

    rules.now.ms += retention_ms - 1;
    EXPECT_FALSE(compact(bytes_of(left)).changed);
    rules.now.ms += 1;
    EXPECT_FALSE(compact(bytes_of(left)).parts);
  }
}

// Without the marker the row would hide whatever its producer has written since.
TEST_F(CompactionFilterTest, AMarkerDoesNotGoBeforeItsRow) {
  const std::vector<AbortedRow> rows{{.producer_id = 7, .first = {10}, .last = {12}}};
  transactions = TransactionWalk(rows, {0});
  const auto left = compact(marker(12, 7, false));
  EXPECT_TRUE(header_of(left).has_delete_horizon());
  EXPECT_THAT(transactions.spent(), ElementsAre(Offset{12}));
  rules.now.ms += retention_ms;
  transactions = TransactionWalk(rows, {0});
  EXPECT_FALSE(compact(bytes_of(left)).changed);
  transactions = TransactionWalk({}, {0});
  EXPECT_FALSE(compact(bytes_of(left)).parts);
}

TEST_F(CompactionFilterTest, TheMarkerThatBeganAProducersEpochStays) {
  rules.producers = {{7, {.epoch = 0, .last_offset = {}}}};
  const auto left = compact(marker(12, 7, true));
  rules.now.ms += retention_ms;
  const auto empty = compact(bytes_of(left));
  EXPECT_EQ(header_of(empty).record_count, 0);
  EXPECT_TRUE(header_of(empty).control());
  EXPECT_FALSE(compact(bytes_of(empty)).changed);
  rules.producers[7].last_offset = {60};
  EXPECT_FALSE(compact(bytes_of(empty)).parts);
}

TEST_F(CompactionFilterTest, LogAppendTimeStays) {
  put("a", 50);
  const auto built = batch(10, {{"a", "v", 100}, {"b", "v", 200}});
  auto header = *read_batch_header(built);
  header.attributes |= 0x08;
  header.max_timestamp = {7777};
  MutableBuffer bytes(built.size());
  bytes.append(built);
  write_batch_header(header, {bytes.data(), batch_header_bytes});
  header.crc =
      batch_crc({bytes.data(), batch_header_bytes}, built.bytes().subspan(batch_header_bytes));
  write_batch_header(header, {bytes.data(), batch_header_bytes});
  const auto left = compact(std::move(bytes).freeze());
  EXPECT_EQ(header_of(left).max_timestamp, Timestamp{7777});
  EXPECT_EQ(records_of(left), (Recs{{11, {"b", "v", 7777}}}));
}

TEST_F(CompactionFilterTest, OldFormatsStayOld) {
  put("a", 12);
  for (const auto magic : {std::int8_t{0}, std::int8_t{1}}) {
    const std::int64_t time = magic == 0 ? -1 : 500;
    const Recs all{{10, {"a", "1", time}}, {11, {"b", "2", time}}, {12, {"a", "3", time}}};
    const auto wrapper = set(magic, all, CompressionId::gzip);
    const auto left = compact(wrapper);
    EXPECT_EQ(left.removed, 1);
    EXPECT_EQ(old_records_of(left), (Recs{all[1], all[2]}));
    EXPECT_EQ(legacy_compression(left.parts->body), CompressionId::gzip);
    EXPECT_EQ(read_entry_head(left.parts->body)->magic, magic);
    EXPECT_EQ(left.parts->base_offset, Offset{11});
    EXPECT_EQ(left.parts->last_offset, Offset{12});
    EXPECT_FALSE(compact(left.parts->body).changed);

    const auto plain = set(magic, {all[0]}, CompressionId::none);
    EXPECT_FALSE(compact(plain).parts);
    EXPECT_FALSE(compact(set(magic, {all[2]}, CompressionId::none)).changed);
  }
}

TEST_F(CompactionFilterTest, OldTombstonesGoByTheAgeOfTheirSegment) {
  put("a", 10);
  const auto tombstone = set(1, {{10, {"a", std::nullopt, 5}}}, CompressionId::none);
  EXPECT_FALSE(compact(tombstone).changed);
  rules.old_tombstones = false;
  EXPECT_FALSE(compact(tombstone).parts);
}

TEST_F(CompactionFilterTest, ACorruptBatchIsNamed) {
  auto bytes = batch(10, {{"a"}, {"b"}});
  MutableBuffer broken(bytes.size());
  broken.append(bytes);
  broken.data()[bytes.size() - 3] ^= std::byte{1};
  const auto left = compact_batch(std::move(broken).freeze(), rules, opening, transactions, *map);
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().code, Errc::corrupt);
  EXPECT_THAT(left.error().detail, HasSubstr("offset 10"));
}

TEST_F(CompactionFilterTest, TheMapIsFilledWithWhatCounts) {
  Payload log;
  log.add(batch(10, {{"a"}, {"b"}, {"a"}}, {.compression = CompressionId::gzip}));
  log.add(batch(13, {{"a"}, {"c"}}, producer(7, true)));
  log.add(marker(15, 7, false));
  log.add(set(1, {{16, {"d"}}, {18, {"b"}}}, CompressionId::gzip));
  log.add(set(0, {{20, {"e"}}}, CompressionId::none));
  transactions = TransactionWalk({{.producer_id = 7, .first = {13}, .last = {15}}}, {0});
  const auto mapped = map_batches(log, {11}, opening, transactions, *map);
  ASSERT_TRUE(mapped) << mapped.error().detail;
  EXPECT_EQ(mapped->next, Offset{21});
  EXPECT_FALSE(mapped->full);
  const auto found = [this](const char* key) { return map->find(as_bytes(key)).value; };
  EXPECT_EQ(found("a"), 12);
  EXPECT_EQ(found("b"), 18);
  EXPECT_EQ(found("c"), -1);  // aborted
  EXPECT_EQ(found("d"), 16);
  EXPECT_EQ(found("e"), 20);
}

TEST_F(CompactionFilterTest, AFullMapEndsBeforeTheBatchThatDoesNotFit) {
  map.emplace(*OffsetMap::make({}, OffsetMap::slot_bytes * 4, 1, 100));  // three keys
  Payload log;
  log.add(batch(10, {{"a"}, {"b"}}));
  log.add(batch(12, {{"a"}, {"c"}, {"d"}}));
  log.add(batch(15, {{"a"}}));
  const auto mapped = map_batches(log, {0}, opening, transactions, *map);
  ASSERT_TRUE(mapped);
  EXPECT_TRUE(mapped->full);
  EXPECT_EQ(mapped->next, Offset{12});
}

}  // namespace
}  // namespace millrace::kernel
