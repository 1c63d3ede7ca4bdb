// What administers a broker: topics made, grown, trimmed and removed; what it keeps, described. In
// terms of the log, as broker.h: no version numbers, no wire format. Calls are made on the
// connection's shard, and answered there; changes are made on the control thread, one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/broker.h>
#include <millrace/configs.h>

namespace millrace {

// ---- topics ----

struct NewTopic {
  std::string name;
  std::int32_t partitions = -1;          ///< -1: num.partitions
  std::int16_t replication_factor = -1;  ///< -1: default.replication.factor
  std::map<std::int32_t, std::vector<std::int32_t>> assignments;
  std::vector<std::pair<std::string, std::optional<std::string>>> configs;
};
struct CreateTopicsRequest {
  std::vector<NewTopic> topics;
  Duration timeout{};
  bool validate_only = false;
};
struct TopicCreated {
  std::string name;
  Uuid id;
  ErrorCode error = ErrorCode::none;
  std::string message;
  std::int32_t partitions = -1;
  std::int16_t replication_factor = -1;
  /// Values and sources, without synonyms and documentation; none of a topic that is refused.
  /// Topics that set nothing of their own share one list.
  std::shared_ptr<const std::vector<ConfigEntry>> configs;
};
struct TopicDeleted {
  TopicName topic;
  ErrorCode error = ErrorCode::none;
  std::string message;
};

struct TopicGrowth {
  std::string name;
  std::int32_t partitions = 0;  ///< how many it shall have
  /// Replicas of each added partition; none: the broker places them.
  std::optional<std::vector<std::vector<std::int32_t>>> assignments;
};
struct GrowTopicsRequest {
  std::vector<TopicGrowth> topics;
  Duration timeout{};
  bool validate_only = false;
};
struct TopicGrown {
  std::string name;
  ErrorCode error = ErrorCode::none;
  std::string message;
};

// ---- records ----

struct PartitionTrim {
  std::int32_t partition = -1;
  Offset before;  ///< records below it go; none (-1): all below the high watermark
};
struct TopicTrim {
  std::string topic;
  std::vector<PartitionTrim> partitions;
};
struct TrimRequest {
  std::vector<TopicTrim> topics;
  Duration timeout{};
};
struct PartitionTrimmed {
  std::int32_t partition = -1;
  ErrorCode error = ErrorCode::none;
  Offset log_start;  ///< the lowest of all replicas
};
struct TopicTrimmed {
  std::string topic;
  std::vector<PartitionTrimmed> partitions;
};

// ---- descriptions ----

/// Partitions of a topic, by number.
struct TopicPartitions {
  std::string topic;
  std::vector<std::int32_t> partitions;
};

struct TopicPage {
  std::vector<TopicInfo> topics;
  std::optional<TopicPartition> next;  ///< where the next page begins; none: this was the last
};
struct TopicPageRequest {
  std::optional<std::vector<std::string>> topics;  ///< none: all
  std::optional<TopicPartition> from;              ///< what a page before has said
  std::int32_t partitions_max = 1;
};

struct PartitionSize {
  std::int32_t partition = -1;
  std::uint64_t bytes = 0;
  std::int64_t offset_lag = 0;  ///< how far the log's end is behind the high watermark
  Offset log_start;
  Offset last_stable;
  Offset high_watermark;
  Offset end;
  // since this broker opened the log
  std::uint64_t appended_bytes = 0;
  std::uint64_t read_bytes = 0;  ///< for clients
  bool failing = false;          ///< the last append did not reach the log
  // where cleanup.policy has "compact", and the log has been looked at for that
  Offset cleaned_to;                  ///< where what is not compacted begins; none: see above
  std::uint64_t clean_bytes = 0;      ///< below it
  std::uint64_t cleanable_bytes = 0;  ///< what a pass could compact now
  Timestamp compacted_at;  ///< when a pass last ended; none: not since the log was opened
  std::int32_t compacting_percent = -1;  ///< how far a pass is that runs now; -1: none does
  bool uncleanable = false;              ///< the last one failed
};
struct TopicSizes {
  std::string topic;
  std::vector<PartitionSize> partitions;
};
struct LogFolder {
  ErrorCode error = ErrorCode::none;
  std::string path;
  std::vector<TopicSizes> topics;
  std::int64_t bytes_total = -1;  ///< of its file system; -1: not known
  std::int64_t bytes_usable = -1;
};

struct ProducerInfo {
  std::int64_t producer_id = -1;
  std::int16_t producer_epoch = -1;
  std::int32_t last_sequence = -1;
  Timestamp last_timestamp;
  std::int32_t coordinator_epoch = -1;
  Offset transaction_start;  ///< none: no transaction is open
};
struct PartitionProducers {
  std::int32_t partition = -1;
  ErrorCode error = ErrorCode::none;
  std::vector<ProducerInfo> producers;
};
struct TopicProducers {
  std::string topic;
  std::vector<PartitionProducers> partitions;
};

// ---- leaders and replicas ----

struct PartitionOutcome {
  std::int32_t partition = -1;
  ErrorCode error = ErrorCode::none;
  std::string message;
};
struct TopicOutcome {
  std::string topic;
  std::vector<PartitionOutcome> partitions;
};
struct ClusterOutcome {
  ErrorCode error = ErrorCode::none;  ///< NOT_CONTROLLER; of single partitions: below
  std::string message;
  std::vector<TopicOutcome> topics;
};

/// Which replica shall lead (KIP-460): the first of the list, or any that lives, whatever is lost.
enum class ElectionType : std::int8_t { preferred = 0, unclean = 1 };
struct ElectionRequest {
  ElectionType type = ElectionType::preferred;
  std::optional<std::vector<TopicPartitions>> partitions;  ///< none: all of the cluster
  Duration timeout{};
};

/// KIP-455.
struct PartitionReassignment {
  std::int32_t partition = -1;
  std::optional<std::vector<std::int32_t>> replicas;  ///< none: the one that runs is cancelled
};
struct TopicReassignment {
  std::string topic;
  std::vector<PartitionReassignment> partitions;
};
struct ReassignmentRequest {
  std::vector<TopicReassignment> topics;
  Duration timeout{};
  bool replication_factor_may_change = true;  ///< KIP-860
};
struct OngoingReassignment {
  std::int32_t partition = -1;
  std::vector<std::int32_t> replicas;  ///< all, those of the next two lists included
  std::vector<std::int32_t> adding;
  std::vector<std::int32_t> removing;
};
struct OngoingReassignments {
  std::string topic;
  std::vector<OngoingReassignment> partitions;
};
struct ReassignmentsListed {
  ErrorCode error = ErrorCode::none;  ///< NOT_CONTROLLER
  std::string message;
  std::vector<OngoingReassignments> topics;
};

/// Broker::admin(). Implemented by the kernel; errors of single topics and partitions are codes in
/// the answer, a failed Task means that the broker is stopping.  [connection's shard]
class Admin {
 public:
  virtual ~Admin() = default;

  virtual Task<std::vector<TopicCreated>> create_topics(Session& session,
                                                        CreateTopicsRequest request) = 0;
  virtual Task<std::vector<TopicDeleted>> delete_topics(Session& session,
                                                        std::vector<TopicName> topics,
                                                        Duration timeout) = 0;
  /// Adds partitions. Keys that a producer spreads by hash go elsewhere from then on.
  virtual Task<std::vector<TopicGrown>> grow_topics(Session& session,
                                                    GrowTopicsRequest request) = 0;
  /// Moves log starts. What is answered stays removed, also after a crash.
  virtual Task<std::vector<TopicTrimmed>> trim(Session& session, TrimRequest request) = 0;

  /// Topics by name, a bounded number of partitions at a time.
  virtual Task<TopicPage> describe_topics(Session& session, TopicPageRequest request) = 0;
  /// What this broker keeps; partitions that are not here are left out. None: all.
  virtual Task<std::vector<LogFolder>> describe_log_folders(
      Session& session, std::optional<std::vector<TopicPartitions>> topics) = 0;
  /// Idempotent and transactional producers that partitions remember.
  virtual Task<std::vector<TopicProducers>> describe_producers(
      Session& session, std::vector<TopicPartitions> topics) = 0;

  // Of the controller alone. A partition whose leader already is the one that is asked for is
  // answered with ELECTION_NOT_NEEDED; with `partitions` none it is left out.
  virtual Task<ClusterOutcome> elect_leaders(Session& /*session*/, ElectionRequest /*request*/) {
    ClusterOutcome refused;
    refused.error = ErrorCode::unsupported_version;
    co_return refused;
  }
  /// Answered once it is begun; list_reassignments() tells what still runs.
  virtual Task<ClusterOutcome> reassign(Session& /*session*/, ReassignmentRequest /*request*/) {
    ClusterOutcome refused;
    refused.error = ErrorCode::unsupported_version;
    co_return refused;
  }
  /// None: all.
  virtual Task<ReassignmentsListed> list_reassignments(
      Session& /*session*/, std::optional<std::vector<TopicPartitions>> /*topics*/) {
    ReassignmentsListed refused;
    refused.error = ErrorCode::unsupported_version;
    co_return refused;
  }
};

}  // namespace millrace
