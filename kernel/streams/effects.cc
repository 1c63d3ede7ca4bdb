#include "kernel/streams/effects.h"

#include <utility>

namespace millrace::kernel {

namespace {

// An attempt that takes longer has failed, and is made again.
constexpr Duration append_time_max = std::chrono::seconds(30);

EffectResult failed(ErrorCode error, std::string detail) {
  return {error, std::move(detail), nullptr, is_retriable(error)};
}

EffectResult failed(const Error& error) { return failed(error_code_of(error), error.detail); }

// What this broker knows is what there is: no attempt finds a topic that is not among it.
std::optional<EffectResult> check_known(ShardState& here, const TopicPartition& to) {
  const auto& cluster = here.cluster();
  const auto* topic = cluster ? cluster->find(std::string_view(to.topic)) : nullptr;
  if (topic && to.partition >= 0 &&
      static_cast<std::size_t>(to.partition) < topic->partitions.size()) {
    return std::nullopt;
  }
  EffectResult result;
  result.error = ErrorCode::unknown_topic_or_partition;
  result.detail = to_string(to) + " does not exist";
  result.again = !cluster;
  return result;
}

EffectResult gone(const TopicPartition& to) {
  return failed(ErrorCode::not_leader_or_follower, to_string(to) + " is not here");
}

Task<EffectResult> append_on(ShardState& owner, TopicPartition to, Buffer batch) {
  const auto partition = owner.find(to.topic, to.partition);
  if (!partition) co_return gone(to);
  const PartitionRecords records{to.partition, std::move(batch)};
  auto call = partition->produce(records, {.acks = -1, .timeout = append_time_max});
  MR_CO_CHECK(co_await call.dispatched);
  auto produced = co_await call.done;
  if (!produced) co_return failed(produced.error());
  if (produced->error != ErrorCode::none) {
    co_return failed(produced->error, std::move(produced->message));
  }
  co_return EffectResult{};
}

Task<EffectResult> mark_on(ShardState& owner, MarkerEffect marker) {
  const auto partition = owner.find(marker.to.topic, marker.to.partition);
  if (!partition) co_return gone(marker.to);
  const TransactionMarker mark{marker.commit, marker.coordinator_epoch};
  auto appended = partition->append_marker(marker.producer_id, marker.producer_epoch, mark);
  if (!appended) co_return failed(appended.error().error, std::move(appended.error().message));
  auto done = co_await appended->written;
  if (done) done = co_await partition->reached(appended->end);
  if (!done) co_return failed(done.error());
  co_return EffectResult{};
}

}  // namespace

Task<EffectResult> EffectCalls::attempt(const Effect& effect) {
  if (const auto* one = std::get_if<AppendEffect>(&effect.call)) co_return co_await append(*one);
  if (const auto* one = std::get_if<MarkerEffect>(&effect.call)) co_return co_await mark(*one);
  co_return co_await command(std::get<CommandEffect>(effect.call));
}

Task<EffectResult> EffectCalls::append(const AppendEffect& effect) {
  if (auto unknown = check_known(partitions_.here(), effect.to)) co_return *std::move(unknown);
  BatchBuilder builder({});
  const auto now = clock_.wall();
  for (const auto& record : effect.records) {
    builder.add(now, record.key, record.value);
  }
  MR_CO_TRY(auto batch, std::move(builder).finish());
  auto& owner = partitions_.owner_of(effect.to.topic, effect.to.partition);
  auto make = [&owner, to = effect.to, batch = std::move(batch)] {
    return append_on(owner, to, batch);
  };
  co_return co_await run_on(owner.shard(), std::move(make));
}

Task<EffectResult> EffectCalls::mark(const MarkerEffect& effect) {
  if (auto unknown = check_known(partitions_.here(), effect.to)) co_return *std::move(unknown);
  auto& owner = partitions_.owner_of(effect.to.topic, effect.to.partition);
  auto make = [&owner, effect] { return mark_on(owner, effect); };
  co_return co_await run_on(owner.shard(), std::move(make));
}

Task<EffectResult> EffectCalls::command(const CommandEffect& effect) {
  auto call = aggregates_.command(effect.aggregate, effect.key, effect.make());
  MR_CO_CHECK(co_await call.dispatched);
  MR_CO_TRY(auto answer, co_await call.done);
  if (answer.error != ErrorCode::none) co_return failed(answer.error, std::move(answer.detail));
  co_return EffectResult{ErrorCode::none, {}, std::move(answer.message), false};
}

}  // namespace millrace::kernel
