// An event-sourced state machine beside a partition: groups, transactions, queues, and what
// applications write. It decides about commands, what it decided becomes events in a log, and its
// state is what the events of that log make of it. This header needs the standard library alone; an
// aggregate may be built by any compiler with the Itanium C++ ABI.
//
// One object per partition of its log, on the shard of that partition's leader: no locks, and
// nothing in here may block. A command runs with all earlier events applied:
//
//   decide(command) -> emit(event)...  one append, all or nothing
//                   -> evolve(event)   each, once the append has succeeded; and again at a replay
//                   -> answers leave   once the high watermark has passed what they rest on
//
// An append that fails changes nothing: no evolve() is called, and whoever this decide() has
// answered gets the error instead. When the leadership is lost the object is dropped, and those who
// wait are told to look for the new leader, which restores the latest snapshot and replays.
//
// State is of two kinds. What must survive changes in evolve() alone. What may be lost with the
// leader (who waits, when somebody was last heard of) may change in decide() as well.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <millrace/buffer.h>
#include <millrace/error_code.h>
#include <millrace/record.h>
#include <millrace/result.h>
#include <millrace/types.h>

namespace millrace {

/// What is said to an aggregate, and what it answers: types that both ends know, the plugin's own
/// or those of the service that it provides.
class Message {
 public:
  Message() = default;
  Message(const Message&) = default;
  Message& operator=(const Message&) = default;
  virtual ~Message() = default;
};

/// A message that is bytes: what comes from outside, where nobody knows the plugin's types.
class BytesMessage final : public Message {
 public:
  explicit BytesMessage(Buffer content) : bytes(std::move(content)) {}
  Buffer bytes;
  /// What goes with it, as with a record: "millrace-expected-version".
  std::vector<std::pair<std::string, Buffer>> headers;

  /// The last of that name; nullptr when there is none.
  const Buffer* find(std::string_view header) const noexcept {
    for (auto at = headers.rbegin(); at != headers.rend(); ++at) {
      if (at->first == header) return &at->second;
    }
    return nullptr;
  }
};

/// Somebody who waits for an answer. A number: keep it for as long as it takes, copy it freely.
/// Whoever is answered twice hears the first; who is never answered waits until the aggregate is
/// unloaded.
enum class ReplyTo : std::uint64_t { nobody = 0 };

struct Command {
  std::string_view key;  ///< chose the partition: the entity, the group
  Message& body;         ///< its content may be moved away
  ReplyTo reply_to = ReplyTo::nobody;
};

/// What is known of an event beside its record.
struct EventInfo {
  Offset offset;
  Timestamp time;
  bool replay = false;  ///< read from the log at a load; not decided by this object
  std::int64_t producer_id = -1;
  std::int16_t producer_epoch = -1;
  bool transactional = false;  ///< counts once its transaction has ended; see end_transaction()
};

// ---- effects ----

/// Records for a partition of any topic, as one batch.
struct AppendEffect {
  struct Record {
    std::optional<Buffer> key;
    std::optional<Buffer> value;
  };
  TopicPartition to;
  std::vector<Record> records;
};
/// The end of a transaction for one partition that takes part in it (KIP-98).
struct MarkerEffect {
  TopicPartition to;
  std::int64_t producer_id = -1;
  std::int16_t producer_epoch = -1;
  bool commit = false;
  std::int32_t coordinator_epoch = 0;
};
/// A command to another aggregate, wherever it is; `make` may be called again for a retry.
struct CommandEffect {
  std::string aggregate;
  std::string key;
  std::function<std::unique_ptr<Message>()> make;
};
/// A call to another partition. It runs once the events of the decide() that asked for it are
/// committed, is retried until it succeeds or cannot, and its outcome comes back through
/// effect_done(). It may run twice: after a change of leaders loaded() asks again for what the
/// state says is pending.
struct Effect {
  std::string name;  ///< comes back with the outcome; one of a name runs at a time
  std::variant<AppendEffect, MarkerEffect, CommandEffect> call;
};
struct EffectOutcome {
  std::string_view name;
  ErrorCode error = ErrorCode::none;  ///< of a call that no retry can help
  std::string_view detail;
  Message* answer = nullptr;  ///< of a CommandEffect
};

// ---- what an aggregate sees ----

struct ClusterTopic {
  std::string name;
  Uuid id;
  /// By partition: the racks of its replicas, empty where brokers have none.
  std::vector<std::vector<std::string>> racks;
  std::int32_t partitions() const noexcept { return static_cast<std::int32_t>(racks.size()); }
};

/// The topics as this broker knows them.
class ClusterView {
 public:
  virtual ~ClusterView() = default;
  /// Goes up with every change of topics, partitions or racks.
  virtual std::int64_t version() const noexcept = 0;
  /// nullptr when there is none. Valid during the call that got the Context.
  virtual const ClusterTopic* find(std::string_view name) const = 0;
  virtual const ClusterTopic* find(const Uuid& id) const = 0;
  /// Sorted by name.
  virtual std::vector<std::string_view> names() const = 0;
};

/// The runtime, for the length of one call.
class Context {
 public:
  virtual ~Context() = default;

  /// An event of the aggregate's log; no value: a tombstone, which ends what `key` names. Those of
  /// one call are appended as one batch, in order, when it returns.
  virtual void emit(Bytes key, std::optional<Bytes> value) = 0;
  /// Whoever waits as `to` gets the message, once the high watermark has passed all events up to
  /// and including those of this call.
  virtual void answer(ReplyTo to, std::unique_ptr<Message> message) = 0;
  /// The same, with an error that the protocol has a code for.
  virtual void refuse(ReplyTo to, ErrorCode error, std::string detail = {}) = 0;

  /// timer(name) is called `after` from now, in place of what was set under this name before. Gone
  /// when the aggregate is unloaded: loaded() sets it anew. Cheap, but not free: for a deadline
  /// that moves with every heartbeat keep the deadline, and look when the timer comes.
  virtual void set_timer(std::string_view name, Duration after) = 0;
  virtual void cancel_timer(std::string_view name) = 0;
  virtual void start(Effect effect) = 0;

  virtual MonoTime now() const noexcept = 0;
  virtual Timestamp wall() const noexcept = 0;
  virtual Uuid uuid() = 0;
  /// The partition of the log that this object is the state of, or the user's that it is beside;
  /// and the epoch of its leader.
  virtual const TopicPartition& partition() const noexcept = 0;
  virtual Epoch leader_epoch() const noexcept = 0;
  virtual const ClusterView& cluster() const noexcept = 0;
  /// A setting of this broker as it is now, under Kafka's name ("group.max.size"), or its default;
  /// of one group, where it has its own: "groups/GROUP/NAME". Empty when there is no such setting.
  virtual std::string setting(std::string_view name) const = 0;
};

/// Keys and values, in the order of writing.
class SnapshotWriter {
 public:
  virtual ~SnapshotWriter() = default;
  virtual void put(Bytes key, Bytes value) = 0;
};
class SnapshotReader {
 public:
  struct Entry {
    Bytes key;
    Bytes value;
  };
  virtual ~SnapshotReader() = default;
  /// Views of the snapshot's bytes, valid during restore(); nothing at the end.
  virtual std::optional<Entry> next() = 0;
};

/// [partition's shard]. Calls never overlap. What throws is unloaded, reported, and loaded again.
class PartitionAggregate {
 public:
  virtual ~PartitionAggregate() = default;

  virtual void decide(Command& command, Context& context) = 0;
  /// Must accept every event that an earlier version has written. An error means that the log holds
  /// what it never may: the aggregate is not loaded, and the log says where.
  virtual Result<> evolve(const RecordView& event, const EventInfo& info) = 0;
  /// Looks, and changes nothing. The answer leaves when the high watermark has passed what it saw.
  virtual Result<std::unique_ptr<Message>> query(std::string_view key,
                                                 const Message& question) const = 0;

  /// A transaction that wrote events here has ended: they count now, or never.
  virtual void end_transaction(std::int64_t /*producer_id*/, std::int16_t /*producer_epoch*/,
                               bool /*commit*/, const EventInfo& /*info*/) {}
  /// The state is complete, the first command is next: set timers, start effects that are pending.
  virtual void loaded(Context& /*context*/) {}
  /// May decide as decide() does.
  virtual void timer(std::string_view /*name*/, Context& /*context*/) {}
  virtual void effect_done(const EffectOutcome& /*outcome*/, Context& /*context*/) {}
  virtual void cluster_changed(Context& /*context*/) {}

  /// Everything that evolve() has made, so that a load need not begin at the log's start. An
  /// aggregate whose log stays short may leave both out: Errc::unsupported.
  virtual Result<> snapshot(SnapshotWriter& /*out*/) const {
    return Error{Errc::unsupported, "no snapshots"};
  }
  virtual Result<> restore(SnapshotReader& /*in*/) {
    return Error{Errc::unsupported, "no snapshots"};
  }
};

// ---- declaration ----

/// Where the object lives.
enum class Placement : std::uint8_t {
  own_log,  ///< with the leader of its log's partition
  /// With the leader of a partition that users write to. Its key is "TOPIC-N", and that is the
  /// partition that make() and Context::partition() name. Its log is the partition of the same
  /// number of a topic beside the user's, on the same brokers; it grows and goes with the user's.
  user_partition,
};

struct AggregateDeclaration {
  std::string name;  ///< "consumer_groups": one per broker
  /// The topic of its events. Internal; made with these settings when somebody first needs it. With
  /// Placement::user_partition there is one for each topic of users, "TOPIC.ID" with the id of
  /// theirs, and partitions and replicas are theirs.
  std::string topic;
  std::int32_t partitions = 1;
  std::int16_t replication_factor = -1;  ///< -1: as many as topics have by the broker's default
  /// Of the topic: {"cleanup.policy", "compact"}. "compression.type" is that of the events.
  std::map<std::string, std::string> settings;
  Placement placement = Placement::own_log;
};

/// Which of `partitions` a key belongs to: Java's String.hashCode, as Kafka has it for groups and
/// transactional ids.
std::int32_t partition_of_key(std::string_view key, std::int32_t partitions) noexcept;

/// What a plugin of kind `operators` registers.
class AggregateFactory {
 public:
  virtual ~AggregateFactory() = default;
  /// [start-up]
  virtual AggregateDeclaration declaration() const = 0;
  /// [any thread]
  virtual std::int32_t partition_of(std::string_view key, std::int32_t partitions) const noexcept {
    return partition_of_key(key, partitions);
  }
  /// For one partition of the log, or of the user's topic; its state comes from restore() and
  /// evolve().  [partition's shard]
  virtual std::unique_ptr<PartitionAggregate> make(const TopicPartition& partition) = 0;
};

}  // namespace millrace
