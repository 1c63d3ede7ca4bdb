// A cluster's groups as a client sees them: each is asked for at its coordinator.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/types.h>

#include "kernel/cli/cluster_client.h"

namespace millrace::kernel::cli {

struct GroupLine {
  std::string group;
  std::string state;  ///< "" where the broker is too old to tell; likewise the type
  std::string type;
  std::string protocol_type;
  std::int32_t coordinator = -1;
};

struct GroupMember {
  std::string member_id;
  std::string instance_id;
  std::string client_id;
  std::string host;
  std::vector<TopicPartition> partitions;  ///< sorted
};

/// Of either protocol.
struct GroupView {
  std::string group;
  std::string state;
  std::string type;      ///< "classic" or "consumer"
  std::string assignor;  ///< the classic protocol's name of it
  std::int32_t coordinator = -1;
  std::vector<GroupMember> members;

  bool is_active() const { return !members.empty(); }
};

/// What a group has committed, by partition.
using CommittedOffsets = std::map<TopicPartition, Offset>;
/// Offsets of a log, by partition.
using LogOffsets = std::map<TopicPartition, Offset>;

/// [one shard]
class GroupClient {
 public:
  static Task<std::unique_ptr<GroupClient>> connect(Network& network, std::string bootstrap);

  /// Of all brokers, by name.
  Task<std::vector<GroupLine>> list();
  /// GROUP_ID_NOT_FOUND when there is none; the error names the nearest that there is.
  Task<GroupView> describe(std::string group);
  /// All that the group has committed. Topics that are gone are left out where offsets name them
  /// by id.
  Task<CommittedOffsets> committed(std::string group);
  /// Where the logs of `partitions` are at a timestamp or OffsetSpec; those that are gone or have
  /// no leader, and those that have nothing from then on, are left out.
  Task<LogOffsets> offsets_at(std::vector<TopicPartition> partitions, std::int64_t timestamp);
  /// Commits for a group that nobody is a member of.
  Task<> commit(std::string group, CommittedOffsets offsets);
  Task<> remove(std::string group);

  ClusterClient& cluster() noexcept { return *cluster_; }

 private:
  explicit GroupClient(std::unique_ptr<ClusterClient> cluster) : cluster_(std::move(cluster)) {}

  /// Waits a little for one that is starting.
  Task<std::int32_t> coordinator_id(std::string group);
  Task<kafka::Client*> coordinator(std::string group);
  /// Asks it, and once more where `code_of` its answer says that it is just starting, or another
  /// one has become it.
  template <class Request, class CodeOf>
  Task<typename Request::Response> ask_coordinator(std::string group, Request request,
                                                   CodeOf code_of);
  Task<GroupView> find(std::string group);
  Task<std::optional<GroupView>> describe_consumer_group(kafka::Client& at, std::string group);
  Task<GroupView> describe_classic_group(kafka::Client& at, std::string group);
  /// Topics by their ids.
  Task<std::map<Uuid, std::string>> topic_names();

  std::unique_ptr<ClusterClient> cluster_;
};

}  // namespace millrace::kernel::cli
