#include "kernel/broker/offset_checkpoints.h"

#include <chrono>
#include <iterator>
#include <vector>

namespace millrace::kernel {

namespace {

constexpr Duration checkpoint_interval = std::chrono::seconds(60);

using Choose = Offset (*)(const Partition& partition);

Offset high_watermark_of(const Partition& partition) { return partition.offsets().high_watermark; }
Offset log_start_of(const Partition& partition) { return partition.offsets().log_start; }
Offset recovery_point_of(const Partition& partition) { return partition.recovery_point(); }

Task<std::vector<PartitionOffset>> offsets_of(ShardState& state, Choose choose) {
  std::vector<PartitionOffset> offsets;
  for (const auto& partition : state.all()) {
    offsets.push_back({partition->id(), choose(*partition)});
  }
  co_return std::move(offsets);
}

Task<std::vector<PartitionOffset>> offsets_of(PartitionMap& partitions, Choose choose) {
  std::vector<PartitionOffset> all;
  for (const auto& state : partitions.shards()) {
    auto make = [&state = *state, choose] { return offsets_of(state, choose); };
    MR_CO_TRY(auto some, co_await run_on(state->shard(), std::move(make)));
    std::ranges::move(some, std::back_inserter(all));
  }
  co_return std::move(all);
}

}  // namespace

void OffsetCheckpoints::start() {
  spawn(parts_.environment.control(), loop(), "checkpoints", &background_);
}

Task<> OffsetCheckpoints::loop() {
  MR_CO_TRY(auto pass, running_.enter());
  while (true) {
    MR_CO_CHECK(co_await sleep(checkpoint_interval));
    auto written = co_await write_all();
    if (!written) {
      parts_.log.error("checkpoints could not be written; they are tried again",
                       {{"error", to_string(written.error())}});
    }
  }
}

Task<> OffsetCheckpoints::write_all() {
  MR_CO_TRY(auto turn, co_await writing_.lock());
  MR_CO_TRY(auto points, co_await offsets_of(partitions_, &recovery_point_of));
  auto noting = parts_.storage.checkpoint(CheckpointKind::recovery_point, std::move(points));
  MR_CO_CHECK(co_await std::move(noting));
  MR_CO_TRY(auto offsets, co_await offsets_of(partitions_, &high_watermark_of));
  auto writing = parts_.storage.checkpoint(CheckpointKind::high_watermark, std::move(offsets));
  MR_CO_CHECK(co_await std::move(writing));
  co_return co_await write_log_starts_in_turn();
}

Task<> OffsetCheckpoints::write_log_starts() {
  MR_CO_TRY(auto pass, running_.enter());
  const auto mine = ++log_starts_asked_;
  MR_CO_TRY(auto turn, co_await writing_.lock());
  if (mine <= log_starts_written_) co_return {};
  co_return co_await write_log_starts_in_turn();
}

Task<> OffsetCheckpoints::write_log_starts_in_turn() {
  const auto asked = log_starts_asked_;
  MR_CO_TRY(auto offsets, co_await offsets_of(partitions_, &log_start_of));
  auto writing = parts_.storage.checkpoint(CheckpointKind::log_start, std::move(offsets));
  MR_CO_CHECK(co_await std::move(writing));
  log_starts_written_ = asked;
  co_return {};
}

Task<> OffsetCheckpoints::close(bool write) {
  background_.cancel();
  MR_CO_CHECK(co_await running_.close());
  if (!write) co_return {};
  co_return co_await write_all();
}

}  // namespace millrace::kernel
