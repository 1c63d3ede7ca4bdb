#include "kernel/broker/offset_checkpoints.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <vector>

namespace millrace::kernel {

namespace {

// Of recovery points and log starts: what they save is work after a crash.
constexpr Duration all_interval = std::chrono::seconds(60);

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

bool same(const PartitionOffset& a, const PartitionOffset& b) {
  return a.offset == b.offset && a.partition == b.partition;
}

}  // namespace

void OffsetCheckpoints::start(Duration high_watermark_interval) {
  auto running = loop(std::min(high_watermark_interval, all_interval));
  spawn(parts_.environment.control(), std::move(running), "checkpoints", &background_);
}

Task<> OffsetCheckpoints::loop(Duration interval) {
  MR_CO_TRY(auto pass, running_.enter());
  Shard& control = co_await this_shard();
  auto all_due = control.now() + all_interval;
  while (true) {
    MR_CO_CHECK(co_await sleep(interval));
    const bool all = control.now() >= all_due;
    if (all) all_due = control.now() + all_interval;
    auto written = co_await (all ? write_all() : write_high_watermarks());
    if (!written) {
      parts_.log.error("checkpoints could not be written; they are tried again",
                       {{"error", to_string(written.error())}});
    }
  }
}

Task<> OffsetCheckpoints::write_high_watermarks() {
  MR_CO_TRY(auto turn, co_await writing_.lock());
  co_return co_await write_high_watermarks_in_turn();
}

Task<> OffsetCheckpoints::write_high_watermarks_in_turn() {
  MR_CO_TRY(auto offsets, co_await offsets_of(partitions_, &high_watermark_of));
  if (std::ranges::equal(offsets, high_watermarks_, &same)) co_return {};
  auto writing = parts_.storage.checkpoint(CheckpointKind::high_watermark, offsets);
  MR_CO_CHECK(co_await std::move(writing));
  high_watermarks_ = std::move(offsets);
  co_return {};
}

Task<> OffsetCheckpoints::write_all() {
  MR_CO_TRY(auto turn, co_await writing_.lock());
  MR_CO_TRY(auto points, co_await offsets_of(partitions_, &recovery_point_of));
  auto noting = parts_.storage.checkpoint(CheckpointKind::recovery_point, std::move(points));
  MR_CO_CHECK(co_await std::move(noting));
  MR_CO_CHECK(co_await write_high_watermarks_in_turn());
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
