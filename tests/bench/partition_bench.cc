// What a partition costs per byte produced: checks, opening of compressed batches, the whole way to
// a log that keeps nothing. Prints one line for each; run a release build on an idle machine.
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "kernel/partition/partition.h"
#include "tests/unit/kernel/partition/test_environment.h"
#include "tests/unit/sdk/batch/loaded_codecs.h"

namespace millrace::kernel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto measured = std::chrono::milliseconds(500);

// A log whose end moves and that has no bytes.
class NullLog final : public PartitionLog {
 public:
  Result<Ticket> append(std::span<const BatchParts> batches) override {
    end_ = batches.back().last_offset + 1;
    return Ticket{1};
  }
  Task<> written(Ticket) override { co_return {}; }
  Task<Payload> read(ReadRequest) override { co_return Payload(); }
  Task<BatchPosition> batch_at(Timestamp) override { co_return BatchPosition{}; }
  Task<> flush(Offset) override { co_return {}; }
  Result<> truncate_from(Offset) override { return {}; }
  Result<> trim_before(Offset) override { return {}; }
  Result<> roll() override { return {}; }
  Result<> reset_to(Offset) override { return {}; }
  std::vector<SegmentInfo> segments() const override { return {}; }
  LogBounds bounds() const noexcept override { return {Offset{0}, end_, end_}; }
  Task<std::vector<AuxEntry>> aux(AuxKind) override { co_return std::vector<AuxEntry>(); }
  Task<> put_aux(AuxKind, Offset, Buffer) override { co_return {}; }
  void reconfigure(const LogOptions&) override {}
  Task<> close() override { co_return {}; }

 private:
  Offset end_{0};
};

class NullStorage final : public Storage {
 public:
  Task<> lock() override { co_return {}; }
  Task<DirectoryOwner> owner() override { co_return DirectoryOwner{}; }
  Task<> set_owner(DirectoryOwner) override { co_return {}; }
  Task<std::vector<FoundPartition>> list() override { co_return std::vector<FoundPartition>(); }
  Task<Opened> open(TopicPartition, LogOptions) override {
    co_return Opened{.log = std::make_unique<NullLog>()};
  }
  Task<> remove(TopicPartition) override { co_return {}; }
  Task<> checkpoint(CheckpointKind, std::vector<PartitionOffset>) override { co_return {}; }
  Task<std::vector<PartitionOffset>> checkpointed(CheckpointKind) override {
    co_return std::vector<PartitionOffset>();
  }
  Task<> close() override { co_return {}; }
};

// Records of 100 bytes, of words: about as compressible as logs are.
Buffer batch_of(std::size_t bytes, CompressionId codec) {
  static const char* const words[] = {"request",  "timeout", "user=", "latency_ms=", "GET",
                                      "/orders/", "payment", "retry", "ok",          "warning"};
  std::minstd_rand random(7);
  BatchBuilder builder({.compression = codec});
  while (builder.bytes() < bytes) {
    std::string value;
    while (value.size() < 90) value += words[random() % 10] + std::to_string(random() % 1000) + " ";
    value.resize(90);
    builder.add({1'700'000'000'000}, as_bytes(std::to_string(random())), as_bytes(value));
  }
  return *std::move(builder).finish(millrace::testing::loaded_codecs());
}

void report(const std::string& what, std::size_t bytes, const std::function<void()>& once) {
  const auto start = Clock::now();
  std::size_t times = 0;
  Clock::duration spent{};
  while (spent < measured) {
    for (int i = 0; i < 16; ++i) once();
    times += 16;
    spent = Clock::now() - start;
  }
  const auto us = std::chrono::duration<double, std::micro>(spent).count();
  std::printf("%-44s %9.1f us  %8.0f MB/s of record bytes\n", what.c_str(),
              us / static_cast<double>(times), static_cast<double>(bytes * times) / us);
}

void measure_checks(std::size_t bytes) {
  const auto& codecs = millrace::testing::loaded_codecs();
  const TopicConfig plain{.max_message_bytes = 2 << 20};
  const TopicConfig compacted{.cleanup_compact = true, .max_message_bytes = 2 << 20};
  const Timestamp now{1'700'000'000'000};
  const auto size = std::to_string(bytes >> 10) + " KiB ";
  for (const auto codec : {CompressionId::none, CompressionId::gzip, CompressionId::snappy,
                           CompressionId::lz4, CompressionId::zstd}) {
    const auto batch = batch_of(bytes, codec);
    const auto check = [&batch, &codecs, now](const TopicConfig& config) {
      const auto intake = check_intake(batch, config, {}, codecs);
      MR_ASSERT(intake && prepare(*intake, config, codecs, now));
    };
    report(size + std::string(name_of(codec)) + ", checked", bytes, [&] { check(plain); });
    report(size + std::string(name_of(codec)) + ", checked and opened", bytes,
           [&] { check(compacted); });
  }
}

void measure_produce(std::size_t bytes) {
  testing::TestEnvironment environment;
  testing::TestLog lines;
  NullStorage storage;
  Opening opening_with(environment.workers(), environment.workers());
  PartitionHost host{
      environment,         environment.shard(), storage, millrace::testing::loaded_codecs(),
      Log(lines, "bench"), opening_with};
  std::unique_ptr<Partition> partition;
  auto opening = [](PartitionHost with, std::unique_ptr<Partition>& to) -> Task<> {
    MR_CO_TRY(
        to, co_await Partition::open(with, {"bench", 0}, {}, {.max_message_bytes = 2 << 20}, {0}));
    co_return {};
  };
  spawn(environment.shard(), opening(host, partition), "open");
  environment.run();
  const auto batch = batch_of(bytes, CompressionId::none);
  report(std::to_string(bytes >> 10) + " KiB none, produced", bytes, [&] {
    const PartitionRecords records{.partition = 0, .records = batch};
    const auto call = partition->produce(records, {.acks = -1});
    environment.run();
    MR_ASSERT(call.done.is_ready());
  });
  spawn(environment.shard(), partition->close(), "close");
  environment.run();
}

}  // namespace
}  // namespace millrace::kernel

int main() {
  for (const std::size_t bytes : {1UL << 10, 16UL << 10, 1UL << 20}) {
    millrace::kernel::measure_checks(bytes);
    millrace::kernel::measure_produce(bytes);
  }
}
