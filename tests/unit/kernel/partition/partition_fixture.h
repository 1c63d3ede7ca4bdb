// A partition over a test log, and short ways to call it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/partition/partition.h"
#include "tests/unit/kernel/partition/test_environment.h"
#include "tests/unit/kernel/partition/test_storage.h"

namespace millrace::kernel::testing {

/// A result that arrives while the environment runs.
template <class T>
class Arriving {
 public:
  bool arrived() const noexcept { return result_->has_value(); }
  /// Must have arrived, without an error.
  const T& value() const {
    EXPECT_TRUE(arrived()) << "nothing has arrived";
    if (!arrived()) std::abort();
    EXPECT_TRUE((*result_)->has_value()) << (*result_)->error().detail;
    return ***result_;
  }
  const Result<T>& result() const { return **result_; }

  template <class Awaitable>
  static Arriving start(Shard& shard, Awaitable awaitable) {
    Arriving arriving;
    auto wait = [](Awaitable from, std::shared_ptr<std::optional<Result<T>>> to) -> Task<> {
      *to = co_await std::move(from);
      co_return {};
    };
    spawn(shard, wait(std::move(awaitable), arriving.result_), "test");
    return arriving;
  }

 private:
  std::shared_ptr<std::optional<Result<T>>> result_ = std::make_shared<std::optional<Result<T>>>();
};

/// The records of a batch: one for each value, a second apart from `time` on.
struct BatchSpec {
  std::vector<std::string> values{"value"};
  std::optional<std::string> key = "key";
  std::int64_t time = 1'700'000'000'000;
  std::int64_t producer_id = -1;
  std::int16_t producer_epoch = -1;
  std::int32_t base_sequence = -1;
  bool transactional = false;
  bool control = false;
  CompressionId compression = CompressionId::none;
};

class PartitionFixture : public ::testing::Test {
 protected:
  PartitionFixture() {
    for (const auto& codec : codec_objects) codecs.add(*codec);
  }

  // Whatever a test left waiting ends before its partition does.
  void TearDown() override {
    storage.stored.hold_written = false;
    storage.stored.released.notify_all();
    if (partition) close();
  }

  void open(const ConfigMap& overrides = {}, Epoch epoch = {0}) {
    auto config = TopicConfig::parse({}, overrides);
    ASSERT_TRUE(config) << config.error().detail;
    PartitionHost host{environment, environment.shard(),   storage,
                       codecs,      Log(log, "partition"), batch_opening};
    auto opening = Partition::open(std::move(host), {"topic", 3}, {}, *config, epoch);
    auto opened = run(std::move(opening));
    ASSERT_TRUE(opened) << opened.error().detail;
    partition = *std::move(opened);
  }
  void close() {
    auto closed = run(partition->close());
    ASSERT_TRUE(closed) << closed.error().detail;
    partition.reset();
  }
  void reopen(const ConfigMap& overrides = {}, Epoch epoch = {0}) {
    close();
    open(overrides, epoch);
  }
  /// As after a crash: what a clean end would have written is missing.
  void crash_and_reopen(const ConfigMap& overrides = {}) {
    auto aux = storage.stored.aux;
    close();
    storage.stored.aux = std::move(aux);
    open(overrides);
  }

  Buffer batch(const BatchSpec& spec = {}) const {
    BatchBuilder builder({.compression = spec.compression,
                          .producer_id = spec.producer_id,
                          .producer_epoch = spec.producer_epoch,
                          .base_sequence = spec.base_sequence,
                          .transactional = spec.transactional,
                          .control = spec.control});
    auto time = spec.time;
    const auto key = spec.key ? std::optional<Bytes>(as_bytes(*spec.key)) : std::nullopt;
    for (const auto& value : spec.values) {
      builder.add({time}, key, as_bytes(value));
      time += 1000;
    }
    return *std::move(builder).finish(codecs);
  }

  Arriving<PartitionProduced> begin_produce(std::optional<Buffer> records,
                                            ProduceContext context = {
                                                .acks = -1, .timeout = std::chrono::seconds(5)}) {
    const PartitionRecords wanted{.partition = 3, .records = std::move(records)};
    auto call = partition->produce(wanted, context);
    EXPECT_TRUE(call.dispatched.is_ready());
    return Arriving<PartitionProduced>::start(environment.shard(), std::move(call.done));
  }
  PartitionProduced produce(std::optional<Buffer> records,
                            ProduceContext context = {.acks = -1,
                                                      .timeout = std::chrono::seconds(5)}) {
    auto producing = begin_produce(std::move(records), context);
    environment.run();
    return producing.value();
  }
  PartitionFetched fetch(std::int64_t from,
                         ReadContext context = {.bytes_max = 1 << 20, .at_least_one = true},
                         std::int32_t bytes_max = 1 << 20) {
    return fetch(PartitionFetch{.partition = 3, .from = {from}, .bytes_max = bytes_max}, context);
  }
  PartitionFetched fetch(PartitionFetch request, ReadContext context) {
    auto fetched = run(partition->read(request, context));
    EXPECT_TRUE(fetched) << fetched.error().detail;
    return *std::move(fetched);
  }
  PartitionOffsetFound find(std::int64_t timestamp, Epoch epoch = {}) {
    const PartitionOffsetQuery query{
        .partition = 3, .current_leader_epoch = epoch, .timestamp = timestamp};
    auto found = run(partition->find_offset(query, Isolation::read_uncommitted));
    EXPECT_TRUE(found) << found.error().detail;
    return *found;
  }
  void maintain() {
    auto done = run(partition->maintain());
    EXPECT_TRUE(done) << done.error().detail;
  }

  template <class T>
  Result<T> run(Task<T> task) {
    auto result = std::make_shared<std::optional<Result<T>>>();
    auto wait = [](Task<T> from, std::shared_ptr<std::optional<Result<T>>> to) -> Task<> {
      to->emplace(co_await std::move(from));
      co_return {};
    };
    spawn(environment.shard(), wait(std::move(task), result), "test");
    environment.run();
    if (!result->has_value()) return Error{Errc::internal, "the task did not end"};
    return std::move(**result);
  }

  /// The values of everything stored, opened.
  std::vector<std::string> stored_values() const {
    std::vector<std::string> values;
    for (const auto& one : storage.stored.batches) {
      const auto section = open_records(one.header, one.bytes, codecs, 1 << 20);
      EXPECT_TRUE(section);
      EXPECT_TRUE(verify_crc(one.bytes));
      EXPECT_TRUE(for_each_record(one.header, *section, [&values](const RecordView& record) {
        values.emplace_back(record.value ? as_text(*record.value) : "null");
        return true;
      }));
    }
    return values;
  }

  std::unique_ptr<Codec> codec_objects[3] = {std::make_unique<MarkCodec>(CompressionId::gzip),
                                             std::make_unique<MarkCodec>(CompressionId::lz4),
                                             std::make_unique<MarkCodec>(CompressionId::zstd)};
  Codecs codecs;
  TestEnvironment environment;
  TestStorage storage{environment};
  OneAtATime one_at_a_time{environment.workers()};
  Opening batch_opening{environment.workers(), one_at_a_time};
  TestLog log;
  std::unique_ptr<Partition> partition;
};

}  // namespace millrace::kernel::testing
