// What brokers of a cluster say to each other, <millrace/peers.h>, as messages and back. What is
// written refers to what it was written from.
#pragma once

#include <cstdint>
#include <vector>

#include <millrace/kafka/alter_partition.h>
#include <millrace/kafka/cluster_update.h>
#include <millrace/peers.h>

namespace millrace::kafka_transport {

kafka::ClusterUpdateRequest write_update(const ClusterUpdate& update);
ClusterUpdate read_update(const kafka::ClusterUpdateRequest& asked);

kafka::ClusterUpdateResponse write_updated(const ClusterUpdated& updated);
ClusterUpdated read_updated(const kafka::ClusterUpdateResponse& response);

kafka::AlterPartitionRequest write_changes(std::int32_t broker, std::int64_t broker_epoch,
                                           const std::vector<InSyncChange>& changes);
/// Topics have the name, or the id, that the version of the message has.
std::vector<InSyncChange> read_changes(const kafka::AlterPartitionRequest& asked);

/// `changed` answers `changes`, in any order; where the topic has no name, in theirs.
kafka::AlterPartitionResponse write_changed(const std::vector<InSyncChanged>& changed,
                                            const std::vector<InSyncChange>& changes);
/// One for each of `changes`, by place, whatever was answered.
std::vector<InSyncChanged> read_changed(const kafka::AlterPartitionResponse& response,
                                        const std::vector<InSyncChange>& changes);

}  // namespace millrace::kafka_transport
