// A cluster as a client sees it: asks any broker for metadata, keeps a connection to each leader.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <millrace/broker.h>
#include <millrace/environment.h>
#include <millrace/kafka/client.h>

namespace millrace::kernel::cli {

/// [one shard]
class ClusterClient {
 public:
  /// Errors say which address was tried.
  static Task<std::unique_ptr<ClusterClient>> connect(Network& network, std::string bootstrap);

  /// The broker that we bootstrapped from.
  kafka::Client& any() noexcept { return *any_; }
  /// All topics, or those that are named; creates nothing.
  Task<MetadataAnswer> metadata(std::optional<std::vector<std::string>> topics);
  /// One topic; its error as an Error that names it.
  Task<TopicInfo> topic(std::string name);
  /// A broker that metadata() has told.
  Task<kafka::Client*> broker(std::int32_t id);
  /// The broker that changes topics.
  Task<kafka::Client*> controller();
  /// The broker that leads `partition` of a topic that topic() has told.
  Task<kafka::Client*> leader_of(PartitionInfo partition);

 private:
  ClusterClient(Network& network, std::unique_ptr<kafka::Client> any)
      : network_(network), any_(std::move(any)) {}

  Network& network_;
  std::unique_ptr<kafka::Client> any_;
  std::map<std::int32_t, Address> brokers_;
  std::map<std::int32_t, std::unique_ptr<kafka::Client>> connected_;
};

/// "UNKNOWN_TOPIC_OR_PARTITION: topic 'x'", as an Error with a fitting Errc.
Error error_of(ErrorCode code, std::string_view what);

}  // namespace millrace::kernel::cli
