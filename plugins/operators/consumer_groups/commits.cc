#include "commits.h"

#include <chrono>
#include <utility>

namespace millrace::consumer_groups {
namespace {

/// As Java counts a string: UTF-16 units.
std::size_t java_length(std::string_view text) {
  std::size_t units = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 || byte >= 0xc0) ++units;
    if (byte >= 0xf0) ++units;
  }
  return units;
}

const ClusterTopic* find(const ClusterView& cluster, const TopicName& topic) {
  return topic.name.empty() ? cluster.find(topic.id) : cluster.find(topic.name);
}

bool has_partition(const ClusterTopic& topic, std::int32_t partition) {
  return partition >= 0 && partition < topic.partitions();
}

/// By id alone a topic is unknown in another way than by name.
ErrorCode unknown(const TopicName& topic) {
  return topic.name.empty() ? ErrorCode::unknown_topic_id : ErrorCode::unknown_topic_or_partition;
}

ErrorCode check_group(Group* group, const OffsetCommitRequest& request, Turn& turn) {
  if (group && group->members) return group->members->check_commit(request, turn);
  if (request.generation < 0) return ErrorCode::none;  // a consumer that assigns itself
  if (group) return ErrorCode::unknown_member_id;
  return request.fenced_by_member_epoch ? ErrorCode::group_id_not_found
                                        : ErrorCode::illegal_generation;
}

Committed committed_of(const PartitionCommit& commit, const OffsetCommitRequest& request,
                       const ClusterTopic& topic, Timestamp now) {
  Committed committed{
      .offset = commit.offset,
      .leader_epoch = commit.leader_epoch,
      .metadata = commit.metadata.value_or(""),
      .committed = commit.commit_timestamp.ms >= 0 ? commit.commit_timestamp : now,
      .topic_id = topic.id,
  };
  if (request.retention) {
    using std::chrono::milliseconds;
    committed.expires = {now.ms +
                         std::chrono::duration_cast<milliseconds>(*request.retention).count()};
  }
  return committed;
}

struct Commit {
  const Group* group;  ///< nullptr where there is none
  const OffsetCommitRequest& request;
  ErrorCode group_error;
  Turn& turn;

  ErrorCode one(const ClusterTopic& topic, const PartitionCommit& commit) {
    if (!has_partition(topic, commit.partition)) return ErrorCode::unknown_topic_or_partition;
    if (group_error != ErrorCode::none) return group_error;
    if (commit.metadata && java_length(*commit.metadata) > turn.settings.metadata_bytes_max) {
      return ErrorCode::offset_metadata_too_large;
    }
    if (group && group->members) {
      const auto error = group->members->check_commit_of(request, topic.id, commit.partition);
      if (error != ErrorCode::none) return error;
    }
    const auto committed = committed_of(commit, request, topic, turn.wall());
    const auto emitted = emit_commit(turn, request.group, topic.name, commit.partition, committed);
    return emitted ? ErrorCode::none : ErrorCode::unknown_server_error;
  }
};

}  // namespace

OffsetCommitAnswer commit_offsets(Group* group, const OffsetCommitRequest& request,
                                  TopicsInUse& topics, Turn& turn) {
  Commit commit{group, request, check_group(group, request, turn), turn};
  OffsetCommitAnswer answer;
  answer.reserve(request.topics.size());
  for (const auto& asked : request.topics) {
    auto& answered = answer.emplace_back(TopicCommitted{.topic = asked.topic});
    answered.partitions.reserve(asked.partitions.size());
    const auto* topic = find(turn.context.cluster(), asked.topic);
    if (topic) topics.saw(topic->name, topic->id);
    for (const auto& partition : asked.partitions) {
      const auto error = topic ? commit.one(*topic, partition) : unknown(asked.topic);
      answered.partitions.push_back({partition.partition, error});
    }
  }
  return answer;
}

OffsetsDeleted delete_offsets(const Group* group, const OffsetDeletion& request, Turn& turn) {
  if (!group) return {.error = ErrorCode::group_id_not_found};
  // What other kinds of groups read nobody knows; those of consumers say so.
  if (group->members && !group->members->empty() && group->members->protocol_type() != "consumer") {
    return {.error = ErrorCode::non_empty_group};
  }
  OffsetsDeleted answer;
  for (const auto& asked : request.topics) {
    auto& answered = answer.topics.emplace_back(OffsetsDeleted::Topic{.topic = asked.topic});
    const auto* topic = turn.context.cluster().find(asked.topic);
    const bool in_use = group->members && group->members->subscribed_to(asked.topic);
    for (const auto partition : asked.partitions) {
      auto error = ErrorCode::none;
      if (!topic || !has_partition(*topic, partition)) {
        error = ErrorCode::unknown_topic_or_partition;
      } else if (in_use) {
        error = ErrorCode::group_subscribed_to_topic;
      } else if (group->offsets.find(asked.topic, partition) ||
                 group->offsets.is_pending(asked.topic, partition)) {
        (void)emit_offset_tombstone(turn, group->id, asked.topic, partition);
      }
      answered.partitions.push_back({partition, error});
    }
  }
  return answer;
}

namespace {

/// One group's offsets as one request wants them.
struct Fetch {
  const Group* group;
  bool require_stable;
  Uuid topic_id;  ///< none: asked by name

  GroupOffsets::Partition one(std::string_view topic, std::int32_t partition) const {
    GroupOffsets::Partition out{.partition = partition};
    if (!group) return out;
    if (require_stable && group->offsets.is_pending(topic, partition)) {
      out.error = ErrorCode::unstable_offset_commit;
      return out;
    }
    const auto* committed = group->offsets.find(topic, partition);
    if (!committed) return out;
    // A commit for an earlier topic of the same name is none of this one.
    const bool of_another =
        !topic_id.is_none() && !committed->topic_id.is_none() && committed->topic_id != topic_id;
    if (of_another) return out;
    out.offset = committed->offset;
    out.leader_epoch = committed->leader_epoch;
    out.metadata = committed->metadata;
    return out;
  }
};

}  // namespace

GroupOffsets fetch_offsets(const Group* group, const FetchOffsets& ask,
                           const ClusterView& cluster) {
  const auto& request = ask.request;
  GroupOffsets out{.group = request.group};
  if (group && group->members) {
    out.error = group->members->check_fetch(request);
    if (out.error != ErrorCode::none) return out;
  }
  if (!request.topics) {
    if (!group) return out;
    for (const auto& [name, partitions] : group->offsets.topics()) {
      const auto* topic = cluster.find(name);
      auto& answered = out.topics.emplace_back();
      answered.topic = {name, topic ? topic->id : Uuid{}};
      const Fetch fetch{group, ask.require_stable, {}};
      for (const auto& [partition, committed] : partitions) {
        answered.partitions.push_back(fetch.one(name, partition));
      }
    }
    return out;
  }
  for (const auto& asked : *request.topics) {
    auto& answered = out.topics.emplace_back(GroupOffsets::Topic{.topic = asked.topic});
    const bool by_id = asked.topic.name.empty();
    const auto* topic = by_id ? cluster.find(asked.topic.id) : nullptr;
    const Fetch fetch{group, ask.require_stable, by_id ? asked.topic.id : Uuid{}};
    for (const auto partition : asked.partitions) {
      if (by_id && !topic) {
        answered.partitions.push_back(
            {.partition = partition, .error = ErrorCode::unknown_topic_id});
      } else {
        answered.partitions.push_back(fetch.one(by_id ? topic->name : asked.topic.name, partition));
      }
    }
  }
  return out;
}

}  // namespace millrace::consumer_groups
