#include "kernel/partition/partition.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace millrace::kernel {

namespace {

// segment.jitter.ms: logs that were made together do not roll together.
Duration jitter(const TopicConfig& config, Duration segment_age, Environment& environment) {
  using std::chrono::milliseconds;
  const auto ms_max = std::min(config.segment_jitter_ms, segment_age / milliseconds(1));
  if (ms_max <= 0) return {};
  const auto ms = environment.random().next() % static_cast<std::uint64_t>(ms_max);
  return milliseconds(ms);
}

LogOptions options_of(const TopicConfig& config, Uuid topic_id, Environment& environment) {
  auto options = config.log_options(topic_id);
  options.segment_age -= jitter(config, options.segment_age, environment);
  return options;
}

}  // namespace

Task<std::unique_ptr<Partition>> Partition::open(PartitionHost host, TopicPartition id,
                                                 Uuid topic_id, TopicConfig config,
                                                 Epoch leader_epoch,
                                                 std::optional<Offset> high_watermark) {
  const auto options = options_of(config, topic_id, host.environment);
  MR_CO_TRY(auto opened, co_await host.storage.open(id, options));
  if (opened.bytes_cut > 0) {
    host.log.warning(
        "cut a torn tail",
        {{"partition", to_string(id)}, {"bytes", opened.bytes_cut}, {"reason", opened.cut_reason}});
  }
  std::unique_ptr<Partition> partition(new Partition(std::move(host), std::move(id), topic_id,
                                                     config, leader_epoch, std::move(opened.log),
                                                     high_watermark));
  const auto end = partition->log_->bounds().end;
  partition->recovery_ = {.offsets_checked = std::max<std::int64_t>(end - opened.checked_from, 0),
                          .bytes_cut = opened.bytes_cut,
                          .created = opened.created};
  MR_CO_CHECK(co_await partition->recover());
  partition->flush_recovered();
  co_return std::move(partition);
}

Partition::Partition(PartitionHost host, TopicPartition id, Uuid topic_id,
                     const TopicConfig& config, Epoch leader_epoch,
                     std::unique_ptr<PartitionLog> log, std::optional<Offset> high_watermark)
    : host_(std::move(host)),
      id_(std::move(id)),
      topic_id_(topic_id),
      config_(config),
      leader_epoch_(leader_epoch),
      leading_(!high_watermark),
      log_(std::move(log)),
      written_end_(log_->bounds().end),
      high_watermark_(
          std::clamp(high_watermark.value_or(written_end_), log_->bounds().start, written_end_)),
      flush_from_(written_end_) {}

void Partition::set_config(const TopicConfig& config) {
  config_ = config;
  log_->reconfigure(options_of(config, {}, host_.environment));
}

PartitionOffsets Partition::offsets() const noexcept {
  const auto bounds = log_->bounds();
  return {.log_start = bounds.start,
          .last_stable = readable_end(Horizon::last_stable),
          .high_watermark = high_watermark_,
          .end = bounds.end};
}

// What is stable ends where the first transaction begins that is not over.
Offset Partition::readable_end(Horizon horizon) const noexcept {
  if (horizon == Horizon::written) return written_end_;
  if (horizon == Horizon::high_watermark) return high_watermark_;
  const auto unstable = producers_.first_unstable();
  if (unstable == Offset{}) return high_watermark_;
  return std::min(high_watermark_, std::max(unstable, log_->bounds().start));
}

ErrorCode Partition::check_leader(Epoch current) const noexcept {
  if (closing_) return ErrorCode::not_leader_or_follower;
  const auto error = check_epoch(current);
  if (error != ErrorCode::none) return error;
  return serving() ? ErrorCode::none : ErrorCode::not_leader_or_follower;
}

ErrorCode Partition::check_epoch(Epoch current) const noexcept {
  if (current == Epoch{} || current == leader_epoch_) return ErrorCode::none;
  return current < leader_epoch_ ? ErrorCode::fenced_leader_epoch : ErrorCode::unknown_leader_epoch;
}

void Partition::hold_high_watermark(bool held) {
  high_watermark_held_ = held;
  if (!held) advance(written_end_);
}

// With one replica, what is written is replicated.
void Partition::advance(Offset written_end) {
  written_end_ = std::max(written_end_, written_end);
  if (!replicas_) return move_high_watermark(written_end_);
  const auto before = high_watermark_;
  move_high_watermark(replicas_->replicated(written_end_));
  if (high_watermark_ == before) notify_watches();  // followers see it
}

void Partition::move_high_watermark(Offset to) {
  if (high_watermark_held_ || to <= high_watermark_) return;
  high_watermark_ = to;
  producers_.settle(high_watermark_);
  high_watermark_moved_.notify_all();
  notify_watches();
}

Task<> Partition::end_running() {
  closing_ = true;
  high_watermark_moved_.notify_all();
  starts_moved_.notify_all();
  notify_watches();
  background_.cancel();
  CancelScope never_cancelled;
  auto ending = running_.close().within(never_cancelled);
  co_return co_await std::move(ending);
}

Task<> Partition::close() {
  MR_CO_CHECK(co_await end_running());
  auto snapshot = co_await store_state();
  auto closed = co_await log_->close();
  co_return closed ? std::move(snapshot) : std::move(closed);
}

Task<> Partition::abandon() {
  MR_CO_CHECK(co_await end_running());
  CancelScope hurried;
  hurried.cancel();
  auto closing = log_->close().within(hurried);
  auto closed = co_await std::move(closing);
  if (!closed && closed.error().code != Errc::cancelled) co_return closed.error();
  co_return {};
}

}  // namespace millrace::kernel
