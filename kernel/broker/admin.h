// What an operator asks of the broker, split into what the control thread changes and what shards
// answer.
#pragma once

#include <optional>
#include <vector>

#include <millrace/admin.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/offset_checkpoints.h"
#include "kernel/broker/partitions.h"
#include "kernel/broker/topic_admin.h"
#include "kernel/cluster/controller.h"

namespace millrace::kernel {

class KernelAdmin final : public Admin {
 public:
  KernelAdmin(BrokerParts& parts, const BrokerConfig& config, PartitionMap& partitions,
              TopicAdmin& topics, Controller& controller, OffsetCheckpoints& checkpoints)
      : parts_(parts),
        config_(config),
        partitions_(partitions),
        topics_(topics),
        controller_(controller),
        checkpoints_(checkpoints) {}

  /// Waits for changes that nobody waits for any more.  [control thread]
  Task<> close() { return running_.close(); }

  // admin.cc
  Task<std::vector<TopicCreated>> create_topics(Session& session,
                                                CreateTopicsRequest request) override;
  Task<std::vector<TopicDeleted>> delete_topics(Session& session, std::vector<TopicName> topics,
                                                Duration timeout) override;
  Task<std::vector<TopicGrown>> grow_topics(Session& session, GrowTopicsRequest request) override;
  Task<std::vector<TopicTrimmed>> trim(Session& session, TrimRequest request) override;

  // admin_moves.cc
  Task<ClusterOutcome> elect_leaders(Session& session, ElectionRequest request) override;
  Task<ClusterOutcome> reassign(Session& session, ReassignmentRequest request) override;
  Task<ReassignmentsListed> list_reassignments(
      Session& session, std::optional<std::vector<TopicPartitions>> topics) override;

  // admin_describe.cc
  Task<TopicPage> describe_topics(Session& session, TopicPageRequest request) override;
  Task<std::vector<LogFolder>> describe_log_folders(
      Session& session, std::optional<std::vector<TopicPartitions>> topics) override;
  Task<std::vector<TopicProducers>> describe_producers(
      Session& session, std::vector<TopicPartitions> topics) override;

 private:
  Shard& control() noexcept { return parts_.environment.control(); }
  template <class Answer, class Wanted, class Change>
  Task<std::vector<Answer>> change_each(std::vector<Wanted> wanted, std::vector<Answer> late,
                                        Duration timeout, Change change);
  Task<> keep_log_starts(Duration timeout);
  Task<std::vector<TopicTrimmed>> trimmed_everywhere(Session& session,
                                                     std::vector<TopicTrimmed> topics,
                                                     Duration limit);

  BrokerParts& parts_;
  const BrokerConfig& config_;
  PartitionMap& partitions_;
  TopicAdmin& topics_;
  Controller& controller_;
  OffsetCheckpoints& checkpoints_;
  Gate running_;  // changes  [control thread]
};

}  // namespace millrace::kernel
