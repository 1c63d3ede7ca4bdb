#include "kernel/streams/aggregate_shard.h"

#include <algorithm>
#include <utility>

namespace millrace::kernel {

AggregateShard::AggregateShard(KernelBroker& broker, ShardState& state, EffectCalls& effects,
                               OperatorSettings settings, const Declared& declared,
                               std::function<void()> orphans)
    : state_(state),
      view_(broker.config(), state),
      host_{.environment = broker.parts().environment,
            .shard = state.shard(),
            .codecs = state.codecs(),
            .log = Log(broker.parts().log.sink(), "aggregates"),
            .view = view_,
            .effects = effects,
            .running = running_,
            .snapshot_events = settings.snapshot_events,
            .snapshot_bytes = settings.snapshot_bytes},
      declared_(declared),
      orphans_(std::move(orphans)) {}

void AggregateShard::open() {
  runners_.resize(declared_.size());
  for (const auto& aggregate : declared_) {
    makers_.emplace_back(std::shared_ptr<void>(), &aggregate->factory);  // its plugin's
  }
  open_ = true;
  told_ = view_.version();
  state_.observe(*this);
  for (const auto& partition : state_.all()) {
    if (partition->leading()) leads(partition);
  }
}

Task<> AggregateShard::close() {
  if (!std::exchange(open_, false)) co_return {};
  state_.forget(*this);
  std::vector<Pending<>> closing;
  for (const auto& topics : runners_) {
    for (const auto& [topic, runners] : topics) {
      for (const auto& runner : runners) {
        if (runner) closing.push_back(start(shard(), runner->close()));
      }
    }
  }
  for (auto& closed : closing) static_cast<void>(co_await closed);
  runners_.clear();
  makers_.clear();
  co_return co_await running_.close();
}

// All at once, and the first error of them.
template <class F>
Task<> AggregateShard::with_each(const DeclaredAggregate& aggregate, F change) {
  struct Changing {
    TopicPartition id;
    Pending<> done;
  };
  std::vector<Changing> changing;
  for (const auto& runner : all(aggregate)) {
    changing.push_back({runner->id(), start(shard(), change(*runner))});
  }
  Result<> first_failure;
  for (auto& one : changing) {
    auto done = co_await std::move(one.done);
    if (done || !first_failure) continue;
    first_failure = Error{done.error().code, to_string(one.id) + ": " + done.error().detail};
  }
  co_return first_failure;
}

Task<> AggregateShard::prepare(const DeclaredAggregate& aggregate,
                               std::shared_ptr<AggregateFactory> next) {
  co_return co_await with_each(aggregate,
                               [next](AggregateRunner& one) { return one.prepare(next); });
}

void AggregateShard::give_up(const DeclaredAggregate& aggregate) {
  for (const auto& runner : all(aggregate)) runner->give_up();
}

Task<> AggregateShard::take_over(const DeclaredAggregate& aggregate,
                                 std::shared_ptr<AggregateFactory> next) {
  if (!open_) co_return {};
  makers_[aggregate.number] = next;  // of those that come from now on
  co_return co_await with_each(aggregate,
                               [next](AggregateRunner& one) { return one.take_over(next); });
}

AggregateRunner* AggregateShard::find(const DeclaredAggregate& aggregate, std::string_view topic,
                                      std::int32_t partition) const noexcept {
  if (aggregate.number >= runners_.size() || partition < 0) return nullptr;
  const auto& topics = runners_[aggregate.number];
  const auto found = topics.find(topic);
  if (found == topics.end()) return nullptr;
  const auto at = static_cast<std::size_t>(partition);
  return at < found->second.size() ? found->second[at].get() : nullptr;
}

std::vector<std::shared_ptr<AggregateRunner>> AggregateShard::all(
    const DeclaredAggregate& aggregate) const {
  std::vector<std::shared_ptr<AggregateRunner>> here;
  if (aggregate.number >= runners_.size()) return here;
  for (const auto& [topic, runners] : runners_[aggregate.number]) {
    std::ranges::copy_if(runners, std::back_inserter(here),
                         [](const auto& runner) { return runner != nullptr; });
  }
  return here;
}

const DeclaredAggregate* AggregateShard::of_topic(std::string_view topic) const noexcept {
  const auto found = std::ranges::find_if(declared_, [topic](const auto& one) {
    if (one->family.empty()) return one->declaration.topic == topic;
    return topic.starts_with(one->family) && parse_uuid(topic.substr(one->family.size()));
  });
  return found == declared_.end() ? nullptr : found->get();
}

void AggregateShard::leads(const std::shared_ptr<Partition>& partition) {
  const auto& topic = partition->id().topic;
  const auto* aggregate = of_topic(topic);
  if (!aggregate) return;
  std::optional<Uuid> beside;
  if (!aggregate->family.empty()) {
    beside = parse_uuid(std::string_view(topic).substr(aggregate->family.size()));
  }
  auto& runners = runners_[aggregate->number][topic];
  const auto at = static_cast<std::size_t>(partition->id().partition);
  if (runners.size() <= at) runners.resize(at + 1);
  if (runners[at]) return;  // it led before
  runners[at] = std::make_shared<AggregateRunner>(
      host_, makers_[aggregate->number], aggregate->compression, state_, partition, beside);
  runners[at]->start();
}

void AggregateShard::gone(const TopicPartition& id) {
  const auto* aggregate = of_topic(id.topic);
  if (!aggregate) return;
  auto& topics = runners_[aggregate->number];
  const auto found = topics.find(id.topic);
  const auto at = static_cast<std::size_t>(id.partition);
  if (found == topics.end() || at >= found->second.size() || !found->second[at]) return;
  std::exchange(found->second[at], nullptr)->end();
  const bool last =
      std::ranges::none_of(found->second, [](const auto& one) { return one != nullptr; });
  if (last) topics.erase(found);
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
  for (const auto& aggregate : declared_) {
    for (const auto& runner : all(*aggregate)) runner->cluster_changed();
  }
  orphans_();
}

}  // namespace millrace::kernel
