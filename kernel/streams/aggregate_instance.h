// One life of an aggregate's object: from its load until it is dropped. Makes its calls, appends
// what they emit, holds answers back until the high watermark has passed what they rest on, keeps
// its timers and runs its effects.
#pragma once

#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <millrace/aggregates.h>
#include <millrace/batch.h>
#include <millrace/environment.h>

#include "kernel/partition/partition.h"
#include "kernel/streams/asker.h"
#include "kernel/streams/broker_view.h"
#include "kernel/streams/effects.h"
#include "kernel/streams/replay.h"

namespace millrace::kernel {

/// What the aggregates of a shard use and do not own; outlives them.
struct AggregateHost {
  Environment& environment;
  Shard& shard;
  const Codecs& codecs;
  Log log;
  BrokerView& view;
  EffectCalls& effects;
  Gate& running;  ///< what its end waits for
  std::uint64_t snapshot_events = 0;
  std::uint64_t snapshot_bytes = 0;
};

/// Whose object it is.
class AggregateOwner {
 public:
  /// It cannot go on, and is to be dropped and loaded again. Not within a call of the object.
  virtual void failed(Error why) = 0;
  /// Enough has happened since the last snapshot. Not within a call of the object.
  virtual void snapshot_due() = 0;

 protected:
  ~AggregateOwner() = default;
};

/// [partition's shard]. Held by its owner and by what it has under way.
class AggregateInstance final : public std::enable_shared_from_this<AggregateInstance>,
                                private Context,
                                private PartitionWatch {
 public:
  /// `maker` has made `aggregate`, and outlives it.
  AggregateInstance(AggregateHost& host, AggregateOwner& owner,
                    std::shared_ptr<Partition> partition, TopicPartition subject,
                    std::shared_ptr<AggregateFactory> maker,
                    std::unique_ptr<PartitionAggregate> aggregate, CompressionId compression);
  ~AggregateInstance() override;

  // ---- load ----

  /// What it throws is an error, here and below.
  Result<> restore(SnapshotReader& in, Offset at);
  Result<> replay(const ReplayBatch& batch);
  /// All events below it are applied.
  Offset applied() const noexcept { return applied_; }
  /// The load is over: from here on it is called.
  Result<> serve();

  // ---- calls, once it serves ----

  void command(std::string_view key, std::unique_ptr<Message> body, ReplyTo reply_to, Asker asker);
  void query(std::string_view key, std::unique_ptr<Message> question, Asker asker);
  /// Nobody waits for this answer any more.
  void release(ReplyTo reply_to) noexcept;
  void cluster_changed();

  /// All that evolve() has made. Errc::unsupported where the aggregate has no snapshots.
  Result<Buffer> snapshot();
  /// How much has been applied since the last snapshot, or the load.
  std::uint64_t events_since_snapshot() const noexcept { return events_since_; }

  /// Answers whose events are on all replicas leave.
  void release_held();
  /// Whoever waits gets the error; nothing of it is called any more.
  void drop(ErrorCode error, std::string_view detail) noexcept;

 private:
  struct Answer {
    Asker asker;
    AggregateAnswer answer;
  };
  struct Held {
    Offset end;  // goes once the high watermark is here
    std::vector<Answer> answers;
    std::vector<Effect> effects;
  };
  enum class Ended { well, not_appended, failed };

  // Context
  void emit(Bytes key, std::optional<Bytes> value) override;
  void answer(ReplyTo to, std::unique_ptr<Message> message) override;
  void refuse(ReplyTo to, ErrorCode error, std::string detail) override;
  void set_timer(std::string_view name, Duration after) override;
  void cancel_timer(std::string_view name) override;
  void start(Effect effect) override;
  MonoTime now() const noexcept override { return host_.shard.now(); }
  Timestamp wall() const noexcept override { return host_.environment.clock().wall(); }
  Uuid uuid() override { return host_.environment.random().uuid(); }
  const TopicPartition& partition() const noexcept override { return subject_; }
  Epoch leader_epoch() const noexcept override { return partition_->leader_epoch(); }
  const ClusterView& cluster() const noexcept override { return host_.view; }
  std::string setting(std::string_view name) const override { return host_.view.setting(name); }

  // PartitionWatch
  void on_change(bool readable) override;

  // calls
  template <class F>
  Ended call(F body);
  void begin_call();
  Ended end_call(std::optional<Error> failure);
  Ended commit();
  void give_answers();
  void send(Answer answer);
  void refuse_answers(ErrorCode error, const std::string& detail);
  void decide(std::string_view key, Message& body, ReplyTo reply_to, Asker asker);
  void answer_query(std::string_view key, const Message& question, Asker asker);
  Asker take_asker(ReplyTo to);
  void park(ReplyTo reply_to, Asker asker);
  void run_timer(std::string name);
  void later(Job body);
  template <class F>
  void when_caught_up(F body);

  // what follows an append
  Result<> apply(const BatchHeader& header, const Buffer& records, bool replay);
  Result<> apply_one(const RecordView& record, const EventInfo& info);
  void note_write(OwnAppend appended);
  void fail(Error why);
  void follow();
  void look();
  bool behind();
  Task<> catch_up(std::shared_ptr<AggregateInstance> self);

  // effects
  void begin(std::vector<Effect> effects);
  void run_next(const std::string& name);
  Task<> run(std::shared_ptr<AggregateInstance> self, std::shared_ptr<const Effect> effect);
  void end_effect(std::shared_ptr<const Effect> effect, std::shared_ptr<EffectResult> result);

  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };

  AggregateHost& host_;
  AggregateOwner& owner_;
  std::shared_ptr<Partition> partition_;
  const TopicPartition subject_;  // what it is the state of: the same, or a user's
  const std::shared_ptr<AggregateFactory> maker_;
  std::unique_ptr<PartitionAggregate> aggregate_;
  const CompressionId compression_;  // of its events
  Offset applied_;
  std::uint64_t events_since_ = 0;
  std::uint64_t bytes_since_ = 0;
  std::uint64_t snapshot_size_ = 0;
  bool snapshots_ = true;
  bool dropped_ = false;
  AggregateAnswer drop_answer_{ErrorCode::coordinator_not_available, "it has failed", nullptr};

  // Of the call that is under way.
  bool in_call_ = false;
  std::optional<BatchBuilder> events_;
  std::vector<Answer> answers_;
  std::vector<Effect> effects_;
  ReplyTo current_ = ReplyTo::nobody;
  Asker current_asker_;

  std::unordered_map<ReplyTo, Asker> parked_;
  std::deque<Held> held_;
  std::unordered_map<std::string, TimerId, TextHash, std::equal_to<>> timers_;
  std::map<std::string, std::deque<std::shared_ptr<const Effect>>> running_;  // by name
  std::unordered_map<std::uint64_t, TimerId> retries_;
  std::uint64_t next_retry_ = 0;

  bool following_ = false;  // the watch is set
  bool look_posted_ = false;
  bool catching_up_ = false;
  std::deque<Job> waiting_;  // until it has caught up
  CancelScope scope_;
};

/// Of the exception that is being handled.
inline Error thrown_error() noexcept { return detail::error_of(std::current_exception()); }

template <class F>
AggregateInstance::Ended AggregateInstance::call(F body) {
  if (dropped_) return Ended::failed;
  begin_call();
  std::optional<Error> failure;
  try {
    body();
  } catch (...) {
    failure = thrown_error();
  }
  return end_call(std::move(failure));
}

template <class F>
void AggregateInstance::when_caught_up(F body) {
  if (!behind()) return body();
  waiting_.emplace_back(std::move(body));
}

}  // namespace millrace::kernel
