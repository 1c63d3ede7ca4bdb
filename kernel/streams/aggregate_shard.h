// The aggregates of one shard.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/aggregate.h>

#include "kernel/broker/broker.h"
#include "kernel/config/config.h"
#include "kernel/streams/aggregate_runner.h"
#include "kernel/streams/broker_view.h"

namespace millrace::kernel {

/// What a plugin has registered, and what it says of itself.  [any thread; immutable]
struct DeclaredAggregate {
  /// Places keys, also when another version makes the objects: they stay where they are.
  AggregateFactory& factory;
  AggregateDeclaration declaration;
  std::string plugin;
  std::size_t number = 0;  ///< among all
  /// What its events are compressed with.
  CompressionId compression = CompressionId::none;
  /// Where it lives beside partitions of users: what the names of its logs begin with.
  std::string family;
  /// The file that a start of the broker takes it from.
  std::string starts_from;
};

/// Makes a runner for each partition that is led here, and ends it with that.  [its shard]
class AggregateShard final : private ShardObserver {
 public:
  using Declared = std::vector<std::unique_ptr<DeclaredAggregate>>;

  /// `orphans` is told when a topic of users may have gone that logs are beside.
  AggregateShard(KernelBroker& broker, ShardState& state, EffectCalls& effects,
                 OperatorSettings settings, const Declared& declared,
                 std::function<void()> orphans);

  /// Follows what is here and what comes.
  void open();
  Task<> close();

  ShardState& state() noexcept { return state_; }
  Shard& shard() noexcept { return state_.shard(); }
  /// nullptr when the partition of the log `topic` is not here.
  AggregateRunner* find(const DeclaredAggregate& aggregate, std::string_view topic,
                        std::int32_t partition) const noexcept;
  /// Those of an aggregate that are here, by partition.
  std::vector<std::shared_ptr<AggregateRunner>> all(const DeclaredAggregate& aggregate) const;

  /// Another version of an aggregate, see AggregateRunner: all of them that are here. The first
  /// error names its partition.
  Task<> prepare(const DeclaredAggregate& aggregate, std::shared_ptr<AggregateFactory> next);
  void give_up(const DeclaredAggregate& aggregate);
  Task<> take_over(const DeclaredAggregate& aggregate, std::shared_ptr<AggregateFactory> next);

 private:
  // ShardObserver
  void leads(const std::shared_ptr<Partition>& partition) override;
  void gone(const TopicPartition& id) override;
  void published() override;

  using Runners = std::vector<std::shared_ptr<AggregateRunner>>;  // by number of the partition

  const DeclaredAggregate* of_topic(std::string_view topic) const noexcept;
  template <class F>
  Task<> with_each(const DeclaredAggregate& aggregate, F change);
  void tell_changes();

  ShardState& state_;
  BrokerView view_;
  Gate running_;
  AggregateHost host_;
  const Declared& declared_;
  std::function<void()> orphans_;
  std::vector<std::shared_ptr<AggregateFactory>> makers_;  // by number of the aggregate
  // By number of the aggregate, then by topic; null where a partition is not here.
  std::vector<std::map<std::string, Runners, std::less<>>> runners_;
  std::int64_t told_ = 0;  // version of the view
  bool telling_ = false;
  bool open_ = false;
};

}  // namespace millrace::kernel
