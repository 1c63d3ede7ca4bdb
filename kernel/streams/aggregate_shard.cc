#include "kernel/streams/aggregate_shard.h"

#include <algorithm>
#include <utility>

namespace millrace::kernel {

AggregateShard::AggregateShard(KernelBroker& broker, ShardState& state, EffectCalls& effects,
                               OperatorSettings settings, const Declared& declared)
    : state_(state),
      view_(broker.config(), state),
      host_{.environment = broker.parts().environment,
            .shard = state.shard(),
            .codecs = broker.parts().codecs,
            .log = Log(broker.parts().log.sink(), "aggregates"),
            .view = view_,
            .effects = effects,
            .running = running_,
            .snapshot_events = settings.snapshot_events,
            .snapshot_bytes = settings.snapshot_bytes},
      declared_(declared) {}

void AggregateShard::open() {
  runners_.resize(declared_.size());
  open_ = true;
  told_ = view_.version();
  state_.observe(*this);
  for (const auto& partition : state_.all()) opened(partition);
}

Task<> AggregateShard::close() {
  if (!std::exchange(open_, false)) co_return {};
  state_.forget(*this);
  std::vector<Pending<>> closing;
  for (auto& runners : runners_) {
    for (auto& runner : runners) {
      if (runner) closing.push_back(start(shard(), runner->close()));
    }
  }
  for (auto& closed : closing) static_cast<void>(co_await closed);
  runners_.clear();
  co_return co_await running_.close();
}

AggregateRunner* AggregateShard::find(const DeclaredAggregate& aggregate,
                                      std::int32_t partition) const noexcept {
  if (aggregate.number >= runners_.size() || partition < 0) return nullptr;
  const auto& runners = runners_[aggregate.number];
  const auto at = static_cast<std::size_t>(partition);
  return at < runners.size() ? runners[at].get() : nullptr;
}

std::vector<std::shared_ptr<AggregateRunner>> AggregateShard::all(
    const DeclaredAggregate& aggregate) const {
  std::vector<std::shared_ptr<AggregateRunner>> here;
  if (aggregate.number >= runners_.size()) return here;
  std::ranges::copy_if(runners_[aggregate.number], std::back_inserter(here),
                       [](const auto& runner) { return runner != nullptr; });
  return here;
}

const DeclaredAggregate* AggregateShard::of_topic(std::string_view topic) const noexcept {
  const auto found = std::ranges::find_if(
      declared_, [topic](const auto& one) { return one->declaration.topic == topic; });
  return found == declared_.end() ? nullptr : found->get();
}

void AggregateShard::opened(const std::shared_ptr<Partition>& partition) {
  const auto* aggregate = of_topic(partition->id().topic);
  if (!aggregate) return;
  auto& runners = runners_[aggregate->number];
  const auto at = static_cast<std::size_t>(partition->id().partition);
  if (runners.size() <= at) runners.resize(at + 1);
  runners[at] = std::make_shared<AggregateRunner>(host_, aggregate->factory, state_, partition);
  runners[at]->start();
}

void AggregateShard::gone(const TopicPartition& id) {
  const auto* aggregate = of_topic(id.topic);
  if (!aggregate) return;
  auto& runners = runners_[aggregate->number];
  const auto at = static_cast<std::size_t>(id.partition);
  if (at >= runners.size() || !runners[at]) return;
  std::exchange(runners[at], nullptr)->end();
}

// Many changes in a row are told once.
void AggregateShard::published() {
  if (std::exchange(telling_, true)) return;
  shard().post([this] {
    telling_ = false;
    if (open_) tell_changes();
  });
}

void AggregateShard::tell_changes() {
  const auto version = view_.version();
  if (std::exchange(told_, version) == version) return;
  for (const auto& runners : runners_) {
    for (const auto& runner : runners) {
      if (runner) runner->cluster_changed();
    }
  }
}

}  // namespace millrace::kernel
