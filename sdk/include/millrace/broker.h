// What a transport calls: the broker's services in terms of the log, with no version numbers and no
// wire format. Here is the data path; what administers is in <millrace/admin.h>. Calls are made on
// the connection's shard, and answered there.
//
// Two stages: a call is first `dispatched` (its place in every partition is fixed: the connection
// may start its next request), then `done`. A transport that awaits `dispatched` before it decodes
// the next request, and sends answers in request order, keeps pipelined requests in order without
// waiting for acks=all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/environment.h>
#include <millrace/error_code.h>
#include <millrace/payload.h>
#include <millrace/shard.h>
#include <millrace/task.h>
#include <millrace/transport.h>
#include <millrace/types.h>

namespace millrace {

/// Await `dispatched`, then `done`, each once and in this order.
template <class T>
struct [[nodiscard]] Call {
  Pending<> dispatched;
  Pending<T> done;
};

/// A topic as a request names it: by name, or (newer clients) by id alone.
struct TopicName {
  std::string name;
  Uuid id;
};

/// Who is on the other end. Kept by the transport; passed with every call.
struct ClientInfo {
  std::string client_id;
  std::string software;  ///< "apache-kafka-java 4.4.0", once it has said so
  Address peer;
  std::string listener;
};

/// What the broker keeps for one connection (fetch sessions live here).  [connection's shard]
class Session {
 public:
  virtual ~Session() = default;
};

// ---- produce ----

struct PartitionRecords {
  std::int32_t partition = -1;
  std::optional<Buffer> records;  ///< a slice of the request's frame; none: null on the wire
};
struct TopicRecords {
  TopicName topic;
  std::vector<PartitionRecords> partitions;
};
/// What the client's protocol version allows in a batch.
struct ProduceFeatures {
  bool legacy_formats = false;  ///< V0/V1 message sets, up-converted (Produce 0-2)
  bool zstd = true;             ///< KIP-110: Produce 7 on
};
struct ProduceRequest {
  std::optional<std::string> transactional_id;
  std::int16_t acks = -1;  ///< 0, 1 or -1 (all)
  Duration timeout{};
  ProduceFeatures features;
  std::vector<TopicRecords> topics;
  /// Leased for the records: given back once the log has them, which may be long after `dispatched`
  /// where they have to be opened first, and long before `done`.
  MemoryBudget::Lease memory;
};
struct RecordError {
  std::int32_t record_at = 0;
  std::string message;
};
struct PartitionProduced {
  std::int32_t partition = -1;
  ErrorCode error = ErrorCode::none;
  std::string message;
  std::vector<RecordError> record_errors;
  Offset base_offset;
  Timestamp log_append_time;
  Offset log_start;
  /// The records would open to more than is borne, a decompression bomb for all that can be told:
  /// whoever sent them is answered and then let go.
  bool opens_too_large = false;
};
struct TopicProduced {
  TopicName topic;
  std::vector<PartitionProduced> partitions;
};
/// Topics and partitions in the request's order.
struct ProduceAnswer {
  std::vector<TopicProduced> topics;
};

// ---- fetch ----

struct PartitionFetch {
  std::int32_t partition = -1;
  Epoch current_leader_epoch;  ///< what the client believes; none: not checked
  Offset from;
  Epoch last_fetched_epoch;  ///< of the record before `from`; one that diverges is told (KIP-595)
  // of a follower
  Offset log_start;
  Offset high_watermark{INT64_MAX};  ///< that it knows: a later one is worth an answer (KIP-1166)
  std::int32_t bytes_max = 0;
};
struct TopicFetch {
  TopicName topic;
  std::vector<PartitionFetch> partitions;
};
struct TopicForgotten {
  TopicName topic;
  std::vector<std::int32_t> partitions;
};
struct FetchRequest {
  std::int32_t replica_id = -1;     ///< -1: a consumer
  std::int64_t replica_epoch = -1;  ///< of the follower's lease (KIP-903); -1: not told
  Duration wait_max{};
  std::int32_t bytes_min = 0;
  std::int32_t bytes_max = 0x7fffffff;
  Isolation isolation = Isolation::read_uncommitted;
  std::int32_t session_id = 0;
  std::int32_t session_epoch = -1;  ///< -1: no session
  bool by_topic_id = false;
  std::int8_t newest_magic = 2;  ///< the newest format that the client reads
  bool zstd = true;              ///< KIP-110: Fetch 10 on
  std::string rack;
  std::vector<TopicFetch> topics;
  std::vector<TopicForgotten> forgotten;
};
struct AbortedTransaction {
  std::int64_t producer_id = -1;
  Offset first_offset;
};
struct PartitionFetched {
  std::int32_t partition = -1;
  ErrorCode error = ErrorCode::none;
  Offset high_watermark;
  Offset last_stable;
  Offset log_start;
  /// Where what the reader holds leaves this log: the newest epoch that both have, and where it
  /// ends here (KIP-595). None: it does not.
  Epoch diverging_epoch;
  Offset diverging_end;
  std::optional<std::vector<AbortedTransaction>> aborted;  ///< none: null on the wire
  Payload records;
};
struct TopicFetched {
  TopicName topic;
  std::vector<PartitionFetched> partitions;
};
struct FetchAnswer {
  ErrorCode error = ErrorCode::none;
  std::int32_t session_id = 0;
  std::vector<TopicFetched> topics;
};

// ---- offsets ----

/// Special timestamps of ListOffsets.
enum class OffsetSpec : std::int64_t {
  latest = -1,
  earliest = -2,
  max_timestamp = -3,
  earliest_local = -4,
  latest_tiered = -5,
};
struct PartitionOffsetQuery {
  std::int32_t partition = -1;
  Epoch current_leader_epoch;
  std::int64_t timestamp = -1;  ///< milliseconds, or an OffsetSpec
  /// Above 0: where segments begin that were written by then, so many: asked before KIP-79.
  std::int32_t segments_max = 0;
};
struct TopicOffsetQuery {
  std::string topic;
  std::vector<PartitionOffsetQuery> partitions;
};
struct ListOffsetsRequest {
  std::int32_t replica_id = -1;
  Isolation isolation = Isolation::read_uncommitted;
  std::vector<TopicOffsetQuery> topics;
};
struct PartitionOffsetFound {
  std::int32_t partition = -1;
  ErrorCode error = ErrorCode::none;
  Timestamp timestamp;
  Offset offset;
  Epoch leader_epoch;
  std::vector<Offset> segments;  ///< newest first, where segments_max asks for them
};
struct TopicOffsetsFound {
  std::string topic;
  std::vector<PartitionOffsetFound> partitions;
};
struct ListOffsetsAnswer {
  std::vector<TopicOffsetsFound> topics;
};

/// At which offset an epoch ends (KIP-320): a reader that is beyond it holds what the log lost.
struct PartitionEpochQuery {
  std::int32_t partition = -1;
  Epoch current_leader_epoch;  ///< what the asker believes; none: not checked
  Epoch epoch;
};
struct TopicEpochQuery {
  std::string topic;
  std::vector<PartitionEpochQuery> partitions;
};
struct PartitionEpochEnd {
  std::int32_t partition = -1;
  ErrorCode error = ErrorCode::none;
  Epoch epoch;  ///< the asked one, or the newest before it; none: the partition knows neither
  Offset end;
};
struct TopicEpochEnds {
  std::string topic;
  std::vector<PartitionEpochEnd> partitions;
};

// ---- metadata ----

struct BrokerInfo {
  std::int32_t id = -1;
  Address address;  ///< as advertised on the listener that asked
  std::string rack;
};
struct PartitionInfo {
  std::int32_t partition = -1;
  ErrorCode error = ErrorCode::none;
  std::int32_t leader = -1;
  Epoch leader_epoch;
  std::vector<std::int32_t> replicas;
  std::vector<std::int32_t> in_sync;
  std::vector<std::int32_t> offline;
};
struct TopicInfo {
  ErrorCode error = ErrorCode::none;
  TopicName topic;
  bool internal = false;
  std::vector<PartitionInfo> partitions;
};
struct MetadataRequest {
  std::optional<std::vector<TopicName>> topics;  ///< none: all
  bool auto_create = false;
};
struct MetadataAnswer {
  std::vector<BrokerInfo> brokers;
  std::string cluster_id;
  std::int32_t controller_id = -1;
  std::vector<TopicInfo> topics;
};

// ---- producers ----

struct InitProducerIdRequest {
  std::optional<std::string> transactional_id;
  Duration transaction_timeout{};
  std::int64_t producer_id = -1;
  std::int16_t producer_epoch = -1;
};
struct InitProducerIdAnswer {
  ErrorCode error = ErrorCode::none;
  std::int64_t producer_id = -1;
  std::int16_t producer_epoch = -1;
};

class Admin;
class Configs;

/// The broker's services. Implemented by the kernel; errors of a request are codes in its answer, a
/// failed Pending means that the broker is stopping (close the connection).  [connection's shard]
class Broker {
 public:
  virtual ~Broker() = default;

  virtual std::unique_ptr<Session> open_session(const ClientInfo& client) = 0;
  /// Memory for requests in flight on this shard: lease before reading a frame.
  virtual MemoryBudget& memory(Shard& shard) noexcept = 0;

  virtual Call<ProduceAnswer> produce(Session& session, ProduceRequest request) = 0;
  virtual Call<FetchAnswer> fetch(Session& session, FetchRequest request) = 0;
  virtual Task<ListOffsetsAnswer> list_offsets(Session& session, ListOffsetsRequest request) = 0;
  virtual Task<std::vector<TopicEpochEnds>> epoch_ends(Session& session,
                                                       std::vector<TopicEpochQuery> topics) = 0;
  virtual Task<MetadataAnswer> metadata(Session& session, MetadataRequest request) = 0;
  virtual Task<InitProducerIdAnswer> init_producer_id(Session& session,
                                                      InitProducerIdRequest request) = 0;

  /// Topics changed, brokers and partitions described: <millrace/admin.h>.
  virtual Admin& admin() noexcept = 0;
  /// Settings of topics and brokers: <millrace/configs.h>.
  virtual Configs& configs() noexcept = 0;

  /// A service that an operators plugin provides (groups, transactions, queues), by its id; nullptr
  /// when none is loaded: the transport then does not offer its APIs.
  virtual void* service(std::string_view id) noexcept = 0;
  template <class S>
  S* service() noexcept {
    return static_cast<S*>(service(S::service_id));
  }
};

}  // namespace millrace
