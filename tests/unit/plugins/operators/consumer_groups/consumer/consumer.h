// Clients of the consumer protocol, as real ones behave: they give up before they take, and say
// what they own when it has changed.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../bench.h"
#include "plugins/operators/consumer_groups/consumer/membership.h"

namespace millrace::consumer_groups::testing {

using Place = std::pair<Uuid, std::int32_t>;

struct Consumer {
  std::string id;
  std::string group = "g";
  std::optional<std::string> instance_id = {};
  std::optional<std::string> rack = {};
  std::vector<std::string> names = {"orders"};
  std::optional<std::string> regex = {};
  std::optional<std::string> assignor = {};
  Duration rebalance = 60s;
  std::int32_t epoch = 0;
  /// Where records are being read from.
  std::set<Place> owned = {};
  /// What the coordinator has last said that is to be owned.
  std::set<Place> assigned = {};
  std::set<Place> told = {};  ///< what the coordinator knows
};

/// Computes every target at once, unless a test says otherwise.
class ConsumerBench : public Bench {
 public:
  ConsumerBench();
  /// In effect at once.
  void set(const std::string& setting, const std::string& value);

  ConsumerHeartbeatAnswer send(const ConsumerHeartbeat& request,
                               const std::string& client_id = "client");
  /// Everything, as when a client joins or is not sure.
  ConsumerHeartbeatAnswer join(Consumer& consumer);
  /// What has changed, and nothing else. Takes the answer in; partitions that are no longer
  /// assigned stay owned until settle().
  ConsumerHeartbeatAnswer beat(Consumer& consumer);
  /// Gives up and takes up what it was told to.
  static void settle(Consumer& consumer);
  /// beat() and settle() of all, until an answer brings nothing new.
  void converge(const std::vector<Consumer*>& consumers);
  ConsumerHeartbeatAnswer leave(Consumer& consumer, std::int32_t epoch = -1);

  ConsumerGroupDescribed described(const std::string& group = "g");
  std::size_t events() const { return driver.log().size(); }
  Uuid topic(std::string_view name) { return driver.cluster().find(name)->id; }

 private:
  static ConsumerHeartbeat request_of(const Consumer& consumer);
  static void take(Consumer& consumer, const ConsumerHeartbeatAnswer& answer);
};

std::set<Place> places(const std::vector<TopicIdPartitions>& topics);
std::vector<TopicIdPartitions> topics_of(const std::set<Place>& places);

}  // namespace millrace::consumer_groups::testing
