// A partition on a storage plugin as it is shipped, in the simulated environment.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>

#include "kernel/partition/partition.h"
#include "tests/unit/sdk/batch/loaded_codecs.h"

namespace millrace::kernel::testing {

using millrace::testing::loaded_codecs;

// Segments of a few batches each.
inline const ConfigMap small_segments{{"segment.bytes", "4096"}, {"index.interval.bytes", "512"}};

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
  /// Goes on while the world runs.
  Pending<PartitionProduced> begin_produce(Buffer batch) {
    return start(shard(), produce_on(*partition_, std::move(batch)));
  }
  PartitionProduced end(Pending<PartitionProduced>& producing) {
    EXPECT_TRUE(world_.run_until([&] { return producing.is_ready(); }, std::chrono::minutes(1)));
    auto produced = producing.await_resume();
    EXPECT_TRUE(produced) << to_string(produced.error());
    return produced ? *produced : PartitionProduced{};
  }
  std::uint64_t file_bytes() {
    const auto info = disk().info(first_segment());
    return info ? info->size : 0;
  }
  /// Once something is written that the log does not show yet; between two rounds of the shard.
  void between_pieces(std::function<void()> job) {
    shard().post([this, job = std::move(job)]() mutable {
      if (file_bytes() > partition_->bytes()) return job();
      between_pieces(std::move(job));
    });
  }
  Shard& own_shard() { return shard(); }
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

  /// From within, as when something else is under way.
  void begin_maintenance() { spawn(shard(), partition_->maintain(), "maintenance"); }
  void begin_trim(Offset before) {
    auto trimming = [](Partition& partition, Offset to) -> Task<> {
      const auto trimmed = co_await partition.trim({.before = to});
      EXPECT_TRUE(trimmed && trimmed->error == ErrorCode::none);
      co_return {};
    };
    spawn(shard(), trimming(*partition_, before), "trim");
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

  /// Whether a broker would begin a pass now.
  bool compaction_wanted(std::optional<Offset> checkpointed = {}) {
    const auto need = run([&] { return partition_->compaction_need(checkpointed); });
    EXPECT_TRUE(need) << to_string(need.error());
    return need && need->wanted;
  }
  /// One pass, with as much memory for keys; of all of it where nothing says how far it is clean.
  /// `between` is called between its steps.
  Result<CompactionDone> compact(
      std::uint64_t map_bytes = 1 << 20, std::function<void()> between = [] {}) {
    auto need = run([this] { return partition_->compaction_need(std::nullopt); });
    if (!need) return need.error();
    return run([this, map_bytes, between] {
      CompactionMeans means{.map_bytes_max = map_bytes, .step_bytes = 2000};
      return partition_->compact(means, [between] {
        between();
        return false;
      });
    });
  }
  /// The power goes after so many more changes of the disk, until crash() brings it back.
  void crash_after(std::uint64_t changes) { node_.files().crash_after(changes); }
  std::string first_segment() const { return "/data/orders-0/00000000000000000000.log"; }
  void flip_byte(const std::string& path, std::uint64_t at) {
    const auto file = node_.files().open(path, OpenMode::write);
    ASSERT_TRUE(file);
    std::byte byte{};
    ASSERT_TRUE((*file)->read_at(at, {&byte, 1}));
    byte ^= std::byte{1};
    const Bytes changed{&byte, 1};
    ASSERT_TRUE((*file)->write_at(at, {&changed, 1}));
  }
  /// As the broker itself writes: what clients may not, too.
  PartitionProduced append_own(Buffer batch) {
    auto base = run([this, batch = std::move(batch)]() -> Task<Offset> {
      return append_own_on(*partition_, batch);
    });
    EXPECT_TRUE(base) << to_string(base.error());
    return {.base_offset = base ? *base : Offset{}};
  }
  /// A batch of control ends the producer's transaction; answers its offset.
  Offset end_transaction(std::int64_t producer, bool commit) {
    auto ended = run([this, producer, commit]() -> Task<Offset> {
      return end_on(*partition_, producer, commit);
    });
    EXPECT_TRUE(ended) << to_string(ended.error());
    return ended ? *ended : Offset{};
  }
  void follow(Epoch epoch) {
    EXPECT_TRUE(run([this, epoch] { return partition_->follow(epoch); }));
  }
  void lead(Epoch epoch) {
    const Leadership alone{.leader_epoch = epoch, .replicas = {0}, .in_sync = {0}};
    EXPECT_TRUE(run([this, alone] { return partition_->lead(alone); }));
  }
  /// Answers where it fetches next.
  Offset take_over(Epoch epoch, PartitionFetched fetched) {
    auto step = run([this, epoch, fetched = std::move(fetched)]() mutable {
      return partition_->take_over(epoch, std::move(fetched));
    });
    EXPECT_TRUE(step) << to_string(step.error());
    return step ? step->next : Offset{};
  }
  /// As clients get it.
  PartitionFetched fetch_raw(std::int64_t from, Isolation isolation) {
    auto fetched = run([this, from, isolation] {
      const PartitionFetch request{.from = {from}, .bytes_max = 1 << 14};
      return partition_->read(request,
                              {.isolation = isolation, .bytes_max = 1 << 14, .at_least_one = true});
    });
    EXPECT_TRUE(fetched) << to_string(fetched.error());
    return fetched ? *std::move(fetched) : PartitionFetched{};
  }

  Partition& partition() { return *partition_; }
  millrace::testing::SimDisk& disk() { return node_.files(); }
  std::int64_t now_ms() { return node_.clock().wall().ms; }
  millrace::testing::SimWorld& world() { return world_; }

 private:
  static Task<PartitionProduced> produce_on(Partition& partition, Buffer batch) {
    const PartitionRecords records{.partition = 0, .records = std::move(batch)};
    auto call = partition.produce(records, {.acks = -1, .timeout = std::chrono::seconds(5)});
    co_return co_await call.done;
  }
  static Task<Offset> append_own_on(Partition& partition, Buffer batch) {
    auto appended = partition.append_own(batch);
    if (!appended) co_return Error{Errc::internal, appended.error().message};
    MR_CO_CHECK(co_await appended->written);
    co_return appended->base;
  }
  static Task<Offset> end_on(Partition& partition, std::int64_t producer, bool commit) {
    const TransactionMarker marker{.commit = commit, .coordinator_epoch = 0};
    auto appended = partition.append_marker(producer, 0, marker);
    if (!appended) co_return Error{Errc::internal, appended.error().message};
    MR_CO_CHECK(co_await appended->written);
    co_return appended->base;
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

}  // namespace millrace::kernel::testing
