// The aggregates of one shard.
#pragma once

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
  AggregateFactory& factory;
  AggregateDeclaration declaration;
  std::string plugin;
  std::size_t number = 0;  ///< among all
};

/// Makes a runner for each partition that is opened, and ends it with the partition.  [its shard]
class AggregateShard final : private ShardObserver {
 public:
  using Declared = std::vector<std::unique_ptr<DeclaredAggregate>>;

  AggregateShard(KernelBroker& broker, ShardState& state, EffectCalls& effects,
                 OperatorSettings settings, const Declared& declared);

  /// Follows what is here and what comes.
  void open();
  Task<> close();

  ShardState& state() noexcept { return state_; }
  Shard& shard() noexcept { return state_.shard(); }
  /// nullptr when the partition is not here.
  AggregateRunner* find(const DeclaredAggregate& aggregate, std::int32_t partition) const noexcept;
  /// Those of an aggregate that are here, by partition.
  std::vector<std::shared_ptr<AggregateRunner>> all(const DeclaredAggregate& aggregate) const;

 private:
  // ShardObserver
  void opened(const std::shared_ptr<Partition>& partition) override;
  void gone(const TopicPartition& id) override;
  void published() override;

  const DeclaredAggregate* of_topic(std::string_view topic) const noexcept;
  void tell_changes();

  ShardState& state_;
  BrokerView view_;
  Gate running_;
  AggregateHost host_;
  const Declared& declared_;
  // By number of the aggregate, then of the partition; null where it is not here.
  std::vector<std::vector<std::shared_ptr<AggregateRunner>>> runners_;
  std::int64_t told_ = 0;  // version of the view
  bool telling_ = false;
  bool open_ = false;
};

}  // namespace millrace::kernel
