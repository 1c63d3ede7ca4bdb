// Topics as the cluster keeps them: created, deleted and read through coordination, with Kafka's
// rules for names, partitions, replicas and settings.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/admin.h>
#include <millrace/coordination.h>
#include <millrace/environment.h>
#include <millrace/observe.h>

#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel {

/// A bound on one request's work, not on a topic.
inline constexpr std::int32_t new_topic_partitions_max = 10'000;

/// Why a request about a topic is refused.
struct TopicRefusal {
  ErrorCode error = ErrorCode::none;
  std::string message;
};

/// Letters, digits, '.', '_' and '-', at most 249 of them, not "." or "..".
std::optional<TopicRefusal> check_topic_name(std::string_view name);

/// A topic that is there and of which a key is not what it should be.
struct UnreadableTopic {
  std::string name;
  Error why;  ///< names the key
};

/// Reads all topics below /brokers/topics, their keys many at a time. Those whose keys are damaged
/// are put in `unreadable`, for who goes on without them; where there is none of that, the first is
/// the error. [control thread]
Task<std::vector<TopicState>> read_topics(Coordination& coordination,
                                          std::vector<UnreadableTopic>* unreadable = nullptr);

/// Settings as stored under `key`; none, and a line in the log, where that cannot be read.
std::map<std::string, std::string> readable_configs(const std::string& key, std::string_view value,
                                                    const Log& log);

/// What a new topic would look like, or why it may not be made. Checks the name, that it is free,
/// and its settings; takes defaults from `defaults` ("num.partitions",
/// "default.replication.factor"), and avoids the brokers that are drained by it.
struct Planned {
  std::optional<TopicRefusal> refusal;
  TopicState topic;
};
Planned plan_topic(const NewTopic& wanted, const ClusterState& cluster,
                   const std::map<std::string, std::string>& defaults, Random& random);

/// What a topic would look like with more partitions, or why it may not grow so.
Planned plan_growth(const TopicGrowth& wanted, const ClusterState& cluster,
                    const std::map<std::string, std::string>& defaults = {});

// A topic's keys change all or nothing: in one commit, or, where there are too many for one, with
// the last of several, which is that of the topic's own key.

/// Leaves room for the write that fences a controller's commit.
inline constexpr std::size_t part_bytes_max = commit_bytes_max - 1024;

/// Commits of a size that every backend takes, in the given order. Answers the keys' versions.
/// [control thread]
Task<std::vector<Version>> commit_in_parts(Coordination& coordination, std::vector<Write> writes);

/// What makes or removes a topic: the states of its partitions, and the keys that are its own.
struct TopicWrites {
  std::vector<Write> states;
  std::vector<Write> topic;
};
TopicWrites writes_to_make(const TopicState& topic, std::int32_t controller_epoch);
/// `marked`: there is a mark of its deletion, which goes with it.
TopicWrites writes_to_erase(const TopicState& topic, bool marked);
/// Whether one commit takes all of it.
bool fit_together(const TopicWrites& writes) noexcept;
/// The states first.
std::vector<Write> together(TopicWrites writes);

/// Writes the keys of the partitions from `first` on, and of the topic that now has them, all or
/// nothing. Answers the versions of the partitions' states.  [control thread]
Task<std::vector<Version>> write_growth(Coordination& coordination, TopicState topic,
                                        std::int32_t first, std::int32_t controller_epoch);
/// Takes that back: `before` is the topic as it was, `partitions` how many it has got.
Task<> undo_growth(Coordination& coordination, TopicState before, std::int32_t partitions);

/// Writes all keys of `topic`, all or nothing. Errc::conflict when it exists. Answers the versions
/// of its partitions' states.  [control thread]
Task<std::vector<Version>> write_topic(Coordination& coordination, TopicState topic,
                                       std::int32_t controller_epoch);

/// Removes all keys of `topic` and the mark of its deletion, all or nothing.  [control thread]
Task<> erase_topic(Coordination& coordination, TopicState topic);

}  // namespace millrace::kernel
