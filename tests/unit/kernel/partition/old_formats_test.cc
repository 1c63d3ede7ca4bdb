// Message sets V0 and V1: what old producers send, what topics that keep an old format store, what
// each age of consumer is answered. On the storage and compression plugins as they are shipped.
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/bytes.h>
#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>

#include "kernel/partition/partition.h"
#include "kernel/partition/payload_reader.h"
#include "tests/unit/sdk/batch/loaded_codecs.h"

namespace millrace::kernel {
namespace {

using namespace std::chrono_literals;
using millrace::testing::loaded_codecs;
using ::testing::Each;
using ::testing::ElementsAre;

template <class T>
std::string be(T number) {
  std::string text(sizeof number, '\0');
  store_be(reinterpret_cast<std::byte*>(text.data()), number);
  return text;
}

// A message as the format's table says, apart from the code under test.
std::string message(int magic, int attributes, std::int64_t offset, std::string_view value) {
  auto body = be(static_cast<std::int8_t>(magic)) + be(static_cast<std::int8_t>(attributes));
  if (magic == 1) body += be(std::int64_t{1000});
  body += be(std::int32_t{-1}) + be(static_cast<std::int32_t>(value.size())) + std::string(value);
  body = be(crc32(as_bytes(body))) + body;
  return be(offset) + be(static_cast<std::int32_t>(body.size())) + body;
}

std::string compressed(CompressionId codec, std::string_view set) {
  return std::string(loaded_codecs().find(codec)->compress(as_bytes(set))->text());
}
std::string wrapper(int magic, CompressionId codec, std::string_view content) {
  return message(magic, static_cast<int>(codec), 0, content);
}

// One block of snappy, all of it literal.
std::string raw_snappy(std::string_view content) {
  std::byte length[varint_bytes_max];
  const auto bytes = store_uvarint(length, content.size());
  std::string block(as_text({length, bytes}));
  constexpr auto literal_of_two_bytes = static_cast<char>(61 << 2);
  const auto last = content.size() - 1;
  block += {literal_of_two_bytes, static_cast<char>(last & 0xff), static_cast<char>(last >> 8)};
  return block + std::string(content);
}

struct Told {
  std::vector<int> magics;
  std::vector<std::int64_t> offsets;
  std::vector<std::string> values;
  std::vector<std::int64_t> times;
};

class OldFormatsTest : public ::testing::TestWithParam<std::string> {
 private:
  template <class F>
  auto run(F make) {
    return world_.run(shard(), std::move(make));
  }
  Shard& shard() { return *node_.shards().front(); }
  Storage& storage() { return *plugin_->registered().storage; }

 protected:
  OldFormatsTest() : node_(world_.add_node("b1")) {
    auto loaded = millrace::testing::load_plugin(
        std::string(MILLRACE_PLUGIN_DIR) + "/storage/" + GetParam() + ".so", node_, {},
        {{"broker.data", "/data"}});
    EXPECT_TRUE(loaded) << to_string(loaded.error());
    plugin_.emplace(*std::move(loaded));
    EXPECT_TRUE(run([this] { return storage().lock(); }));
  }
  ~OldFormatsTest() override {
    close();
    EXPECT_TRUE(run([this] { return storage().close(); }));
  }
  void close() {
    if (partition_) EXPECT_TRUE(run([this] { return partition_->close(); }));
    partition_.reset();
  }

  void open(const ConfigMap& overrides = {}) {
    const auto config = TopicConfig::parse({}, overrides);
    ASSERT_TRUE(config) << config.error().detail;
    auto opened = run([this, config = *config] {
      PartitionHost host{node_,   shard(), storage(), loaded_codecs(), plugin_->host().log(),
                         opening_};
      return Partition::open(host, {"orders", 0}, {.bytes = {1}}, config, {0});
    });
    ASSERT_TRUE(opened) << to_string(opened.error());
    partition_ = *std::move(opened);
  }

  std::int64_t partition_end() { return partition_->offsets().end.value; }

  PartitionProduced produce(const std::string& records) {
    return produce(Buffer::copy_of(records));
  }
  PartitionProduced produce(const Buffer& batch) {
    auto produced =
        run([this, batch]() -> Task<PartitionProduced> { return produce_on(*partition_, batch); });
    EXPECT_TRUE(produced) << to_string(produced.error());
    return produced ? *produced : PartitionProduced{};
  }
  PartitionFetched fetch(std::int64_t from, int newest_magic, std::int32_t bytes_max = 1 << 20) {
    const ReadContext context{.newest_magic = static_cast<std::int8_t>(newest_magic),
                              .bytes_max = 1 << 20,
                              .at_least_one = true};
    auto fetched = run([this, from, context, bytes_max] {
      const PartitionFetch request{.from = {from}, .bytes_max = bytes_max};
      return partition_->read(request, context);
    });
    EXPECT_TRUE(fetched) << to_string(fetched.error());
    return fetched ? *std::move(fetched) : PartitionFetched{};
  }
  Buffer bytes(std::int64_t from, int newest_magic) {
    const auto fetched = fetch(from, newest_magic);
    EXPECT_EQ(fetched.error, ErrorCode::none);
    return *fetched.records.flatten();
  }
  Told told(std::int64_t from, int newest_magic) {
    const auto log = bytes(from, newest_magic);
    Told told;
    EXPECT_TRUE(for_each_batch(Payload(log), [&](const FoundBatch& found) {
      told.magics.push_back(found.header.magic);
      const auto entry = log.slice(found.position, found.header.total_bytes());
      found.header.magic == 2 ? add_batch(found.header, entry, told) : add_set(entry, told);
      return true;
    }));
    return told;
  }

  static Buffer batch(BatchBuilder::Settings settings, const std::vector<std::string>& values) {
    BatchBuilder builder(settings);
    const HeaderView header{"name", as_bytes("content")};
    std::int64_t time = 1000;
    for (const auto& value : values) {
      builder.add({time++}, std::nullopt, as_bytes(value), {&header, 1});
    }
    return *std::move(builder).finish(loaded_codecs());
  }

 private:
  static Task<PartitionProduced> produce_on(Partition& partition, Buffer batch) {
    const PartitionRecords records{.partition = 0, .records = std::move(batch)};
    auto call = partition.produce(
        records, {.acks = -1, .timeout = 5s, .features = {.legacy_formats = true}});
    co_return co_await call.done;
  }
  static void add_batch(const BatchHeader& header, const Buffer& entry, Told& told) {
    const auto section = open_records(header, entry, loaded_codecs(), 1 << 20);
    EXPECT_TRUE(section);
    EXPECT_TRUE(for_each_record(header, *section, [&told](const RecordView& record) {
      told.offsets.push_back(record.offset.value);
      told.values.emplace_back(as_text(*record.value));
      told.times.push_back(record.timestamp.ms);
      return true;
    }));
  }
  static void add_set(const Buffer& entry, Told& told) {
    const auto messages = open_legacy_entry(entry, loaded_codecs(), 1 << 20);
    EXPECT_TRUE(messages) << messages.error().detail;
    for (const auto& one : *messages) {
      told.offsets.push_back(one.offset.value);
      told.values.emplace_back(one.value->text());
      told.times.push_back(one.timestamp.ms);
    }
  }

  millrace::testing::SimWorld world_{5};
  millrace::testing::SimEnvironment& node_;
  OneAtATime one_at_a_time_{node_.workers()};
  Opening opening_{node_.workers(), one_at_a_time_};
  std::optional<millrace::testing::LoadedPlugin> plugin_;
  std::unique_ptr<Partition> partition_;
};

INSTANTIATE_TEST_SUITE_P(Plugins, OldFormatsTest, ::testing::Values("filelog", "memory"),
                         [](const auto& info) { return info.param; });

// KAFKA-3160: clients of V0 write a header checksum of their own into LZ4 frames, and read no
// other.
TEST_P(OldFormatsTest, C01_BothChecksumsOfLz4AreTakenAndEachReaderGetsItsOwn) {
  open();
  const auto right = compressed(CompressionId::lz4, message(0, 0, 0, "one"));
  auto traditional = right;
  traditional[6] =
      static_cast<char>(xxh32_of_few(as_bytes(std::string_view(right).substr(0, 6))) >> 8);
  ASSERT_NE(right, traditional);
  for (const auto& frame : {right, traditional}) {
    const auto produced = produce(wrapper(0, CompressionId::lz4, frame));
    EXPECT_EQ(produced.error, ErrorCode::none) << produced.message;
  }
  for (const int magic : {0, 1, 2}) EXPECT_THAT(told(0, magic).values, ElementsAre("one", "one"));
  constexpr std::size_t frame_at[] = {26, 34};
  for (const std::size_t magic : {0, 1}) {
    const auto set = bytes(0, static_cast<int>(magic));
    const auto frame = set.bytes().subspan(frame_at[magic]);
    const auto summed = magic == 0 ? frame.first(6) : frame.subspan(4, 2);
    EXPECT_EQ(static_cast<std::uint8_t>(frame[6]), xxh32_of_few(summed) >> 8 & 0xff);
  }
}

TEST_P(OldFormatsTest, C03_SnappyInManyChunksAndWithoutFramingIsTaken) {
  open();
  std::string set;
  for (int i = 0; i < 100; ++i) {
    set += message(0, 0, i, std::string(1000, static_cast<char>('a' + i % 26)));
  }
  const auto in_chunks = compressed(CompressionId::snappy, set);
  EXPECT_EQ(produce(wrapper(0, CompressionId::snappy, in_chunks)).error, ErrorCode::none);
  const auto raw = raw_snappy(message(0, 0, 0, std::string(300, '.')));
  const auto produced = produce(wrapper(0, CompressionId::snappy, raw));
  EXPECT_EQ(produced.error, ErrorCode::none) << produced.message;
  EXPECT_EQ(produced.base_offset, Offset{100});
  for (const int magic : {0, 1, 2}) EXPECT_EQ(told(0, magic).values.size(), 101u);
}

// KAFKA-9669, KAFKA-8106.
TEST_P(OldFormatsTest, C05_OffsetsInsideAWrapperAreRenumbered) {
  open();
  for (const int magic : {0, 1}) {
    for (const auto& offsets : {std::vector{0, 0, 0}, std::vector{5, 9, 7}}) {
      std::string set;
      for (const auto offset : offsets) set += message(magic, 0, offset, "v");
      const auto gzip = compressed(CompressionId::gzip, set);
      const auto produced = produce(wrapper(magic, CompressionId::gzip, gzip));
      EXPECT_EQ(produced.error, ErrorCode::none) << produced.message;
    }
  }
  EXPECT_THAT(told(0, 2).offsets, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  BatchBuilder gaps({.compression = CompressionId::gzip});
  for (const auto delta : {0, 4, 7}) {
    gaps.add_at(delta, {1000}, std::nullopt, as_bytes("v"));
  }
  EXPECT_EQ(produce(*std::move(gaps).finish(loaded_codecs())).error, ErrorCode::invalid_record);
}

// dpkp/kafka-python#710.
TEST_P(OldFormatsTest, C09_AnAnswerIsNeverCutWithinABatch) {
  open();
  for (int i = 0; i < 3; ++i) {
    produce(batch({.compression = CompressionId::gzip}, {"one", "two"}));
  }
  for (const int magic : {0, 1, 2}) {
    for (std::int32_t limit = 1; limit <= 300; ++limit) {
      const auto records = fetch(0, magic, limit).records.flatten();
      ASSERT_TRUE(records);
      std::size_t batches = 0;
      const auto walked = for_each_batch(Payload(*records), [&batches](const FoundBatch&) {
        ++batches;
        return true;
      });
      ASSERT_TRUE(walked) << walked.error().detail;
      ASSERT_GE(batches, 1u) << limit;
    }
  }
}

TEST_P(OldFormatsTest, MessagesOfV0HaveNoTime) {
  open();
  produce(message(0, 0, 0, "old"));
  produce(message(1, 0, 0, "newer"));
  EXPECT_THAT(told(0, 2).times, ElementsAre(-1, 1000));
  EXPECT_THAT(told(0, 0).times, ElementsAre(-1, -1));
}

struct Kept {
  const char* version;
  int magic;
};

// Each of its messages may be stored, and a few kilobytes would be gigabytes in the log.
TEST_P(OldFormatsTest, ASetThatWouldTakeTooMuchInTheLogIsRefused) {
  open({{"compression.type", "uncompressed"}});
  const std::string value(900'000, '0');
  std::string set;
  for (std::int64_t offset = 0; offset < 20; ++offset) {
    MessageSetBuilder wrapper({.magic = 1, .compression = CompressionId::gzip});
    wrapper.add({offset}, {1000}, std::nullopt, as_bytes(value));
    set += std::move(wrapper).finish(loaded_codecs())->text();
    if (offset == 2) EXPECT_EQ(produce(set).error, ErrorCode::none);
  }
  const auto refused = produce(set);
  EXPECT_EQ(refused.error, ErrorCode::message_too_large);
  EXPECT_TRUE(refused.opens_too_large);
  EXPECT_EQ(partition_end(), 3);
}

TEST_P(OldFormatsTest, ATopicKeepsTheFormatOfItsVersion) {
  for (const auto& kept : {Kept{"0.9.0", 0}, Kept{"0.10.2", 1}}) {
    SCOPED_TRACE(kept.version);
    std::int64_t count = 0;
    open({{"message.format.version", kept.version}});
    const auto start = partition_end();
    for (const auto codec :
         {CompressionId::none, CompressionId::gzip, CompressionId::snappy, CompressionId::lz4}) {
      const auto produced = produce(batch({.compression = codec}, {"a", "b", "c"}));
      EXPECT_EQ(produced.error, ErrorCode::none) << produced.message;
      EXPECT_EQ(produced.base_offset.value, start + count);
      count += 3;
    }
    const auto stored = told(start, 2);
    EXPECT_THAT(stored.magics, Each(kept.magic));
    EXPECT_EQ(stored.magics.size(), 6u);  // three messages and three wrappers
    for (const int magic : {0, 1, 2}) {
      const auto all = told(start, magic);
      EXPECT_EQ(all.values.size(), 12u);
      for (std::int64_t at = 0; at < 12; ++at) {
        EXPECT_EQ(all.offsets[static_cast<std::size_t>(at)], start + at);
      }
    }
    EXPECT_THAT(told(start + 5, 2).values.back(), "c");
    close();
  }
}

TEST_P(OldFormatsTest, AnOldFormatRefusesWhatItCannotSay) {
  open({{"message.format.version", "0.10"}});
  EXPECT_EQ(
      produce(batch({.producer_id = 7, .producer_epoch = 0, .base_sequence = 0}, {"a"})).error,
      ErrorCode::unsupported_for_message_format);
  EXPECT_EQ(produce(batch({.compression = CompressionId::zstd}, {"a"})).error,
            ErrorCode::unsupported_compression_type);
  EXPECT_EQ(partition_end(), 0);
}

TEST_P(OldFormatsTest, TheBrokersTimeIsToldInEveryFormat) {
  open({{"message.format.version", "0.10"}, {"message.timestamp.type", "LogAppendTime"}});
  const auto produced = produce(batch({.compression = CompressionId::gzip}, {"a", "b"}));
  EXPECT_GT(produced.log_append_time.ms, 1000);
  EXPECT_THAT(told(0, 2).times, Each(produced.log_append_time.ms));
  EXPECT_THAT(told(0, 1).times, Each(produced.log_append_time.ms));
}

TEST_P(OldFormatsTest, AConsumerIsNotHeldUpByBatchesOfWhichNothingIsLeft) {
  open();
  EXPECT_EQ(produce(batch({}, {"before"})).error, ErrorCode::none);
  const auto zstd = produce(batch({.compression = CompressionId::zstd}, {"unreadable"}));
  EXPECT_EQ(zstd.error, ErrorCode::none);
  EXPECT_THAT(told(0, 1).values, ElementsAre("before"));
  EXPECT_EQ(fetch(1, 1).error, ErrorCode::unsupported_compression_type);
  EXPECT_THAT(told(1, 2).values, ElementsAre("unreadable"));
  EXPECT_TRUE(fetch(2, 1).records.empty());
}

}  // namespace
}  // namespace millrace::kernel
