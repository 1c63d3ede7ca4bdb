// What the aggregates of one shard see of the broker: its topics and its settings.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <millrace/aggregate.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/partitions.h"

namespace millrace::kernel {

/// Follows what the shard knows of the cluster; looks when it is asked, so that nobody pays for
/// changes that no aggregate asks about.  [its shard]
class BrokerView final : public ClusterView {
 public:
  BrokerView(const BrokerConfig& config, const ShardState& shard)
      : config_(config), shard_(shard) {}

  std::int64_t version() const noexcept override;
  const ClusterTopic* find(std::string_view name) const override;
  const ClusterTopic* find(const Uuid& id) const override;
  std::vector<std::string_view> names() const override;

  /// As Context::setting().
  std::string setting(std::string_view name) const;

 private:
  /// Null before the broker has joined.
  const ClusterState* look() const;
  std::string group_setting(std::string_view name) const;
  const ClusterTopic* describe(const TopicState* topic) const;

  const BrokerConfig& config_;
  const ShardState& shard_;
  // What was seen last, and what was made of it.
  mutable std::shared_ptr<const ClusterState> seen_;
  mutable std::int64_t version_ = 0;
  mutable std::unordered_map<const TopicState*, ClusterTopic> described_;
  mutable std::shared_ptr<const ClusterState> settings_of_;
  mutable bool settings_known_ = false;
  mutable std::map<std::string, std::string, std::less<>> settings_;
  mutable std::shared_ptr<const ClusterState> groups_of_;
  mutable bool groups_have_own_ = false;
};

}  // namespace millrace::kernel
