// KIP-951: a client that asked a broker which does not lead is told in the answer who does, and
// where that is, so that it need not ask again before it goes on.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <millrace/broker.h>

namespace millrace::kafka_transport {

class Request;

/// Gathers, for one answer, the topics whose partitions were refused, and finds their leaders.
/// [the connection's shard]
class LeaderHints {
 public:
  static bool is_wanted(ErrorCode error) noexcept {
    return error == ErrorCode::not_leader_or_follower || error == ErrorCode::fenced_leader_epoch;
  }

  /// A topic as the request has named it.
  void want(const TopicName& topic);
  bool wanted() const noexcept { return !wanted_.empty(); }
  /// Asks the broker. Rarely needed, so worth a call of its own.
  Task<> find(Request& request);

  /// The leader that the cluster knows of a partition; nullptr when it knows none.
  const PartitionInfo* leader_of(const TopicName& topic, std::int32_t partition) const;

  /// Writes who leads `partition` into a partition of an answer.
  template <class Written>
  void write(const TopicName& topic, std::int32_t partition, Written& to) const {
    const auto* info = leader_of(topic, partition);
    if (!info) return;
    to.current_leader.leader_id = info->leader;
    to.current_leader.leader_epoch = info->leader_epoch.value;
  }
  /// Writes where the leaders of all topics that were wanted are; refers to this object.
  template <class Written>
  void write_endpoints(std::vector<Written>& to) const {
    for (const auto& broker : found_.brokers) {
      if (!leads(broker.id)) continue;
      auto& endpoint = to.emplace_back();
      endpoint.node_id = broker.id;
      endpoint.host = broker.address.host;
      endpoint.port = broker.address.port;
      if (!broker.rack.empty()) endpoint.rack = broker.rack;
    }
  }

 private:
  bool leads(std::int32_t broker) const;

  std::vector<TopicName> wanted_;
  MetadataAnswer found_;
};

}  // namespace millrace::kafka_transport
