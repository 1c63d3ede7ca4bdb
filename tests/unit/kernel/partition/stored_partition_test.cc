// A partition on the storage plugins as they are shipped, in the simulated environment.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>

#include "kernel/partition/partition.h"
#include "tests/unit/sdk/batch/loaded_codecs.h"

namespace millrace::kernel {
namespace {

using namespace std::chrono_literals;
using millrace::testing::loaded_codecs;

// Segments of a few batches each.
const ConfigMap small_segments{{"segment.bytes", "4096"}, {"index.interval.bytes", "512"}};

struct Sent {
  std::string value;
  std::int64_t time = 0;
};

class StoredPartition {
 private:
  template <class F>
  auto run(F make) {
    return world_.run(shard(), std::move(make));
  }
  Shard& shard() { return *node_.shards().front(); }
  Storage& storage() { return *plugin_->registered().storage; }

 public:
  StoredPartition(const std::string& plugin, std::uint64_t seed)
      : plugin_path_(std::string(MILLRACE_PLUGIN_DIR) + "/storage/" + plugin + ".so"),
        world_(seed),
        node_(world_.add_node("b1")) {}
  ~StoredPartition() { close(); }

  void open(const ConfigMap& overrides = small_segments, std::int32_t epoch = 0) {
    auto loaded =
        millrace::testing::load_plugin(plugin_path_, node_, {}, {{"broker.data", "/data"}});
    ASSERT_TRUE(loaded) << to_string(loaded.error());
    plugin_.emplace(*std::move(loaded));
    ASSERT_TRUE(run([this] { return storage().lock(); }));
    const auto config = TopicConfig::parse({}, overrides);
    ASSERT_TRUE(config) << config.error().detail;
    auto opened = run([this, config = *config, epoch] {
      PartitionHost host{node_,   shard(), storage(), loaded_codecs(), plugin_->host().log(),
                         opening_};
      return Partition::open(host, {"orders", 0}, topic_id_, config, {epoch});
    });
    ASSERT_TRUE(opened) << to_string(opened.error());
    partition_ = *std::move(opened);
  }
  void close() {
    if (!partition_) return;
    if (!node_.crashed()) {
      EXPECT_TRUE(run([this] { return partition_->close(); }));
      EXPECT_TRUE(run([this] { return storage().close(); }));
    } else {
      static_cast<void>(run([this] { return partition_->close(); }));
      static_cast<void>(run([this] { return storage().close(); }));
    }
    partition_.reset();
    plugin_.reset();
  }
  /// The power goes and comes back.
  void crash() {
    node_.crash();
    close();
    node_.restart();
  }

  PartitionProduced produce(Buffer batch) {
    auto produced = run([this, batch = std::move(batch)]() -> Task<PartitionProduced> {
      return produce_on(*partition_, batch);
    });
    EXPECT_TRUE(produced) << to_string(produced.error());
    return produced ? *produced : PartitionProduced{};
  }
  /// The whole records of what one fetch answers, with their offsets.
  std::map<std::int64_t, Sent> fetch(std::int64_t from) {
    auto fetched = run([this, from] {
      const PartitionFetch request{.from = {from}, .bytes_max = 1 << 20};
      return partition_->read(request, {.bytes_max = 1 << 20, .at_least_one = true});
    });
    std::map<std::int64_t, Sent> records;
    EXPECT_TRUE(fetched) << to_string(fetched.error());
    if (!fetched) return records;
    EXPECT_EQ(fetched->error, ErrorCode::none);
    const auto bytes = fetched->records.flatten();
    EXPECT_TRUE(bytes) << to_string(bytes.error());
    for (std::size_t at = 0; bytes && at < bytes->size();) {
      const auto batch = bytes->slice(at);
      const auto header = read_batch_header(batch);
      EXPECT_TRUE(header) << to_string(header.error());
      if (!header) break;
      EXPECT_TRUE(verify_crc(batch.bytes().first(header->total_bytes())));
      const auto section = open_records(*header, batch, loaded_codecs(), 1 << 20);
      EXPECT_TRUE(for_each_record(*header, *section, [&records](const RecordView& record) {
        records[record.offset.value] = {std::string(as_text(*record.value)), record.timestamp.ms};
        return true;
      }));
      at += header->total_bytes();
    }
    return records;
  }
  PartitionOffsetFound find(std::int64_t time) {
    auto found = run([this, time] {
      return partition_->find_offset({.timestamp = time}, Isolation::read_uncommitted);
    });
    EXPECT_TRUE(found) << to_string(found.error());
    return found ? *found : PartitionOffsetFound{};
  }
  void maintain() {
    EXPECT_TRUE(run([this] { return partition_->maintain(); }));
  }

  /// As DeleteRecords does it: the new start is durable before it is answered.
  void trim(Offset before) {
    auto trimmed = run([this, before] { return partition_->trim({.before = before}); });
    ASSERT_TRUE(trimmed && trimmed->error == ErrorCode::none);
    auto noted = run([this, before] {
      std::vector<PartitionOffset> starts{{{"orders", 0}, before}};
      return storage().checkpoint(CheckpointKind::log_start, std::move(starts));
    });
    ASSERT_TRUE(noted) << to_string(noted.error());
  }
  /// The power goes after so many changes of the disk.
  void crash_in_maintenance(std::uint64_t changes) {
    node_.files().crash_after(changes);
    static_cast<void>(run([this] { return partition_->maintain(); }));
    crash();
  }

  Partition& partition() { return *partition_; }
  std::int64_t now_ms() { return node_.clock().wall().ms; }
  millrace::testing::SimWorld& world() { return world_; }

 private:
  static Task<PartitionProduced> produce_on(Partition& partition, Buffer batch) {
    const PartitionRecords records{.partition = 0, .records = std::move(batch)};
    auto call = partition.produce(records, {.acks = -1, .timeout = 5s});
    co_return co_await call.done;
  }
  const std::string plugin_path_;
  const Uuid topic_id_{.bytes = {1}};
  millrace::testing::SimWorld world_;
  millrace::testing::SimEnvironment& node_;
  OneAtATime one_at_a_time_{node_.workers()};
  Opening opening_{node_.workers(), one_at_a_time_};
  std::optional<millrace::testing::LoadedPlugin> plugin_;
  std::unique_ptr<Partition> partition_;
};

Buffer batch_of(const std::vector<Sent>& records, CompressionId codec, std::int32_t sequence) {
  BatchBuilder builder(
      {.compression = codec, .producer_id = 1, .producer_epoch = 0, .base_sequence = sequence});
  for (const auto& record : records) {
    builder.add({record.time}, as_bytes("key"), as_bytes(record.value));
  }
  return *std::move(builder).finish(loaded_codecs());
}

class StoredPartitionTest : public ::testing::TestWithParam<std::string> {
 protected:
  /// Fills with batches of 1 to 7 records, a millisecond apart, of all codecs.
  void fill(std::size_t batches) {
    const auto start = stored.now_ms();
    for (std::size_t i = 0; i < batches; ++i) {
      std::vector<Sent> records;
      for (std::size_t n = 0; n <= i % 7; ++n) {
        const auto index = sent.size() + records.size();
        records.push_back({"value " + std::to_string(index) + std::string(100, '.'),
                           start + static_cast<std::int64_t>(index)});
      }
      const auto codec = static_cast<CompressionId>(i % 5);
      const auto produced =
          stored.produce(batch_of(records, codec, static_cast<std::int32_t>(sent.size())));
      ASSERT_EQ(produced.error, ErrorCode::none) << produced.message;
      ASSERT_EQ(produced.base_offset, Offset{static_cast<std::int64_t>(sent.size())});
      sent.insert(sent.end(), records.begin(), records.end());
    }
  }
  void expect_all_from(std::int64_t start) {
    auto next = start;
    const auto end = static_cast<std::int64_t>(sent.size());
    while (next < end) {
      const auto records = stored.fetch(next);
      ASSERT_FALSE(records.empty()) << next;
      for (const auto& [offset, record] : records) {
        if (offset < next) continue;  // the batch began before it
        ASSERT_EQ(offset, next);
        ASSERT_EQ(record.value, sent[static_cast<std::size_t>(offset)].value);
        ASSERT_EQ(record.time, sent[static_cast<std::size_t>(offset)].time);
        ++next;
      }
    }
  }

  StoredPartition stored{GetParam(), 1};
  std::vector<Sent> sent;
};

TEST_P(StoredPartitionTest, EveryRecordIsReadFromEveryOffset) {
  stored.open();
  fill(60);
  for (std::size_t from = 0; from < sent.size(); from += 3) {
    expect_all_from(static_cast<std::int64_t>(from));
    if (HasFatalFailure()) return;
  }
}

TEST_P(StoredPartitionTest, EveryRecordIsFoundByItsTime) {
  stored.open();
  fill(60);
  for (std::size_t at = 0; at < sent.size(); ++at) {
    const auto found = stored.find(sent[at].time);
    ASSERT_EQ(found.offset, Offset{static_cast<std::int64_t>(at)});
    ASSERT_EQ(found.timestamp, Timestamp{sent[at].time});
  }
  EXPECT_EQ(stored.find(sent.back().time + 1).offset, Offset{});
  EXPECT_EQ(stored.find(-3).offset, Offset{static_cast<std::int64_t>(sent.size()) - 1});
}

TEST_P(StoredPartitionTest, OldSegmentsGoAndTheRestIsRead) {
  auto config = small_segments;
  config["retention.bytes"] = "8192";
  stored.open(config);
  fill(60);
  stored.maintain();
  const auto start = stored.partition().offsets().log_start;
  EXPECT_GT(start, Offset{0});
  expect_all_from(start.value);
  EXPECT_EQ(stored.find(sent.front().time).offset, start);
  EXPECT_EQ(stored.find(-2).offset, start);
}

TEST_P(StoredPartitionTest, AnIdlePartitionIsEmptiedInTheEnd) {
  auto config = small_segments;
  config["retention.ms"] = "60000";
  stored.open(config);
  fill(20);
  stored.world().run_for(2min);
  stored.maintain();
  const Offset end{static_cast<std::int64_t>(sent.size())};
  EXPECT_EQ(stored.partition().offsets().log_start, end);
  EXPECT_EQ(stored.partition().offsets().end, end);
  EXPECT_EQ(stored.find(sent.front().time).offset, Offset{});
  fill(1);
  expect_all_from(end.value);
}

INSTANTIATE_TEST_SUITE_P(Plugins, StoredPartitionTest, ::testing::Values("filelog", "memory"),
                         [](const auto& info) { return info.param; });

class FilelogPartitionTest : public StoredPartitionTest {};

TEST_P(FilelogPartitionTest, RecordsAndProducersSurviveACleanEnd) {
  stored.open();
  fill(40);
  stored.close();
  stored.open(small_segments, 1);
  expect_all_from(0);
  const auto last = std::vector{sent.back()};
  const auto sequence = static_cast<std::int32_t>(sent.size());
  EXPECT_EQ(stored.produce(batch_of(last, CompressionId::none, sequence + 1)).error,
            ErrorCode::out_of_order_sequence_number);
  EXPECT_EQ(stored.produce(batch_of(last, CompressionId::none, sequence)).base_offset.value,
            sequence);
  EXPECT_EQ(stored.find(sent.front().time).leader_epoch, Epoch{0});
  EXPECT_EQ(stored.partition().epoch_end(Epoch{0}).start.value, sequence);
}

// The newest timestamps are in segments of which nothing has been read since the start.
TEST_P(FilelogPartitionTest, TheNewestTimeIsKnownAfterARestart) {
  stored.open();
  fill(60);
  stored.close();
  stored.open();
  EXPECT_EQ(stored.find(-3).offset, Offset{static_cast<std::int64_t>(sent.size()) - 1});
}

// With flush.messages=1 what was acknowledged is there after the power went, and is recognised when
// it is sent again.
TEST_P(FilelogPartitionTest, WhatWasFlushedSurvivesACrash) {
  auto config = small_segments;
  config["flush.messages"] = "1";
  stored.open(config);
  for (int round = 0; round < 5; ++round) {
    fill(9);
    if (round % 2 == 0) stored.maintain();  // with and without a snapshot
    const auto last = std::vector{sent.back()};
    const auto sequence = static_cast<std::int32_t>(sent.size());
    stored.crash();
    stored.open(config, round);
    expect_all_from(0);
    EXPECT_EQ(stored.partition().offsets().end.value, sequence);
    const auto repeated = stored.produce(batch_of(last, CompressionId::gzip, sequence));
    EXPECT_EQ(repeated.base_offset.value, sequence);
    EXPECT_EQ(stored.produce(batch_of(last, CompressionId::gzip, sequence)).base_offset.value,
              sequence);
    sent.push_back(last.front());
  }
}

// R05: what stands beside the log may be torn or missing when the power goes while segments are
// removed; where each epoch began is known all the same.
TEST_P(FilelogPartitionTest, R05_EpochsAreKnownAfterPowerCutsDuringTrims) {
  auto config = small_segments;
  config["flush.messages"] = "1";
  config["retention.bytes"] = "8192";
  std::vector<Offset> begins;
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    stored.open(config, round);
    if (HasFatalFailure()) return;
    begins.push_back(stored.partition().offsets().end);
    fill(9);
    const auto start = stored.partition().offsets().log_start;
    for (std::size_t epoch = 0; epoch + 1 < begins.size(); ++epoch) {
      if (begins[epoch + 1] <= start) continue;
      const auto found = stored.partition().epoch_end(Epoch{static_cast<std::int32_t>(epoch)});
      EXPECT_EQ(found.epoch.value, static_cast<std::int32_t>(epoch));
      EXPECT_EQ(found.start, begins[epoch + 1]);
    }
    expect_all_from(start.value);
    stored.crash_in_maintenance(static_cast<std::uint64_t>(round) * 2);
  }
}

// R13: what was deleted does not come back, and what follows has the offsets behind it.
TEST_P(FilelogPartitionTest, R13_DeletedRecordsStayAwayWhenThePowerGoes) {
  for (int round = 0; round < 5; ++round) {
    SCOPED_TRACE(round);
    stored.open();
    fill(static_cast<std::size_t>(7 + round));
    const Offset end{static_cast<std::int64_t>(sent.size())};
    stored.trim(end);
    stored.crash();
    stored.open();
    EXPECT_EQ(stored.partition().offsets().log_start, end);
    EXPECT_EQ(stored.partition().offsets().end, end);
    sent.push_back({"next", stored.now_ms()});
    const auto sequence = static_cast<std::int32_t>(end.value);
    const auto next = stored.produce(batch_of({sent.back()}, CompressionId::none, sequence));
    ASSERT_EQ(next.base_offset, end) << next.message;
    expect_all_from(end.value);
    stored.close();
  }
}

INSTANTIATE_TEST_SUITE_P(Plugins, FilelogPartitionTest, ::testing::Values("filelog"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace millrace::kernel
