// What administers one partition: its start moved, its epochs told.
#include "kernel/partition/partition.h"

namespace millrace::kernel {

Task<PartitionTrimmed> Partition::trim(PartitionTrim wanted) {
  PartitionTrimmed trimmed{.partition = wanted.partition};
  const auto refuse = [&trimmed](ErrorCode error) {
    trimmed.error = error;
    return trimmed;
  };
  auto pass = running_.enter();
  if (!pass || !serving()) co_return refuse(ErrorCode::not_leader_or_follower);
  // What only compaction may remove is somebody's state.
  if (config_.cleanup_compact && !config_.cleanup_delete) {
    co_return refuse(ErrorCode::policy_violation);
  }
  const auto first_kept = wanted.before == Offset{} ? high_watermark_ : wanted.before;
  if (first_kept < Offset{0} || first_kept > high_watermark_) {
    co_return refuse(ErrorCode::offset_out_of_range);
  }
  const auto before = log_->bounds().start;
  if (first_kept > before) {
    const auto moved = co_await move_start(first_kept);
    if (!moved) {
      host_.log.error("records could not be removed", {{"partition", to_string(id_)},
                                                       {"below", first_kept.value},
                                                       {"error", to_string(moved.error())}});
      co_return refuse(error_code_of(moved.error()));
    }
    host_.log.info(
        "removed records on request",
        {{"partition", to_string(id_)}, {"from", before.value}, {"below", first_kept.value}});
  }
  trimmed.log_start = log_->bounds().start;
  co_return trimmed;
}

Task<> Partition::reach_start(Offset start) {
  while (serving() && replicas_ && replicas_->low_watermark(log_start()) < start) {
    MR_CO_CHECK(co_await starts_moved_.wait());
  }
  co_return {};
}

Task<PartitionTrimmed> Partition::trimmed_everywhere(Offset start, Duration limit) {
  PartitionTrimmed trimmed{.partition = id_.partition};
  auto pass = running_.enter();
  auto reaching = with_deadline(reach_start(start), limit);
  const auto reached = co_await std::move(reaching);
  if (!pass || !serving()) {
    trimmed.error = ErrorCode::not_leader_or_follower;
    co_return trimmed;
  }
  trimmed.log_start = replicas_ ? replicas_->low_watermark(log_start()) : log_start();
  if (!reached) trimmed.error = error_code_of(reached.error());
  co_return trimmed;
}

EpochCache::Entry Partition::epoch_end(Epoch epoch) const {
  return epochs_.end_of(epoch, log_->bounds().end);
}

PartitionEpochEnd Partition::epoch_end(PartitionEpochQuery query) const {
  PartitionEpochEnd answer{.partition = query.partition};
  answer.error = check_leader(query.current_leader_epoch);
  if (answer.error != ErrorCode::none) return answer;
  const auto end = epoch_end(query.epoch);
  answer.epoch = end.epoch;
  answer.end = end.start;
  return answer;
}

}  // namespace millrace::kernel
