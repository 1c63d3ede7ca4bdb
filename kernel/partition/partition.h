// One replica of a partition, on one shard. As leader it checks what producers send, gives it
// offsets, keeps the high watermark and the last stable offset, answers reads below them; as
// follower it appends what the leader has. The log itself is the storage plugin's.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/admin.h>
#include <millrace/broker.h>
#include <millrace/codec.h>
#include <millrace/environment.h>
#include <millrace/observe.h>
#include <millrace/storage.h>
#include <millrace/write_ahead.h>

#include "kernel/cluster/lease_clock.h"
#include "kernel/partition/aborted_transactions.h"
#include "kernel/partition/batch_validator.h"
#include "kernel/partition/compaction.h"
#include "kernel/partition/epoch_cache.h"
#include "kernel/partition/opening.h"
#include "kernel/partition/partition_watch.h"
#include "kernel/partition/producer_state.h"
#include "kernel/partition/rate_limit.h"
#include "kernel/partition/replica_set.h"
#include "kernel/partition/time_search.h"
#include "kernel/partition/topic_config.h"
#include "kernel/partition/transaction_marker.h"

namespace millrace::kernel {

class Partition;

/// Is told by partitions. Not within a call that they make of it.  [partition's shard]
class InSyncWatch {
 public:
  /// Of a leader want_in_sync() may be another set; or a follower cannot_follow().
  virtual void in_sync_due(const TopicPartition& id) = 0;

 protected:
  ~InSyncWatch() = default;
};

/// What a partition uses and does not own; outlives it.
struct PartitionHost {
  Environment& environment;
  Shard& shard;
  Storage& storage;
  const Codecs& codecs;
  Log log;
  Opening& opening;                   ///< of its shard
  std::int32_t broker = 0;            ///< which replica this is
  const LeaseClock* lease = nullptr;  ///< none: it holds for ever
  InSyncWatch* in_sync = nullptr;     ///< none: in-sync sets stay as they are
  Counter* lost = nullptr;            ///< replicated records that an unclean election has cost
};

struct ProduceContext {
  std::int16_t acks = -1;
  Duration timeout{};
  ProduceFeatures features;
};

/// A Call whose request leaves memory between its two stages.
struct [[nodiscard]] Producing {
  Pending<> dispatched;
  /// Whatever it completes with, the records are not needed any more; none: they are not already.
  std::optional<Pending<>> released;
  Pending<PartitionProduced> done;
};

struct ReadContext {
  Isolation isolation = Isolation::read_uncommitted;
  std::int8_t newest_magic = 2;
  bool zstd = true;
  std::uint64_t bytes_max = 0;  ///< what is left of the request's limit
  /// Of old formats, which are made in memory, so much of one partition; a batch at least.
  std::uint64_t converted_bytes_max = 1UL << 20;
  bool at_least_one = false;  ///< the first partition with data answers one batch, however large
  std::int32_t replica = -1;  ///< a follower, who reads to the log's end; -1: a client
  std::int64_t replica_epoch = -1;  ///< of its lease, as it says; -1: it does not
  std::int64_t known_epoch = -1;    ///< as the controller says; -1: it is not known to live

  Horizon horizon() const noexcept {
    return replica >= 0 ? Horizon::written : horizon_of(isolation);
  }
};

/// Offsets as clients see them: log_start <= last_stable <= high_watermark <= end.
struct PartitionOffsets {
  Offset log_start;
  Offset last_stable;
  Offset high_watermark;
  Offset end;
};

/// What opening a partition had to do.
struct Recovery {
  std::int64_t offsets_checked = 0;  ///< behind the recovery point
  std::uint64_t bytes_cut = 0;       ///< torn tail
  bool created = false;              ///< there was no log
};

/// Bytes of records since the log was opened.
struct PartitionTraffic {
  std::uint64_t appended_bytes = 0;
  std::uint64_t read_bytes = 0;  ///< for clients
};

/// What a leader sends to followers that are not in sync is held back by.
struct SendLimits {
  RateLimit* listed = nullptr;  ///< an operator's, of all of them; none: `moving` may count
  RateLimit* moving = nullptr;  ///< of those in `adding`
  std::vector<std::int32_t> adding;
};

/// What a follower has made of an answer of its leader.
struct FollowerStep {
  /// From where on it fetches next, and the epoch of the record before that.
  Offset next;
  Epoch last_epoch;
};

/// What the broker itself has appended.
struct OwnAppend {
  Offset base;
  Offset end;
  /// Written, and the high watermark moved as far as it may. Often so already; an error means that
  /// the write is lost, and that the log takes no more.
  Pending<> written;
};

/// What is told of a partition's compaction.
struct CompactionStatus {
  Offset cleaned_to;  ///< below it no key is there twice; none: nobody has asked yet
  std::uint64_t clean_bytes = 0;
  std::uint64_t cleanable_bytes = 0;  ///< what a pass could clean now
  Timestamp ended;                    ///< when one last did
  bool failed = false;                ///< that one
  bool running = false;
  /// When a pass is wanted although nothing is dirty, so that tombstones and markers whose delete
  /// horizon is over do not stay for want of traffic (KAFKA-8522). None: none waits.
  std::optional<Timestamp> due;
  std::uint64_t bytes_done = 0;  ///< of the one that runs, of about as many
  std::uint64_t bytes_to_do = 0;

  std::int32_t percent() const noexcept;
};

/// What compaction finds to do.
struct CompactionNeed {
  bool compacted = false;  ///< cleanup.policy has "compact"; else nothing of this counts
  CleanableRange range;
  bool wanted = false;          ///< it is to be cleaned now
  std::int64_t overdue_ms = 0;  ///< beyond max.compaction.lag.ms
};

/// [its shard]. Must outlive the calls it has given out: close() waits for them.
class Partition {
 public:
  /// Opens the log, restores producer state from the newest snapshot and the batches behind it.
  /// Leads at once, as the only replica; with a `high_watermark`, as last checkpointed, it waits
  /// for lead() or follow(), and no more counts as replicated than is below it.
  static Task<std::unique_ptr<Partition>> open(PartitionHost host, TopicPartition id, Uuid topic_id,
                                               TopicConfig config, Epoch leader_epoch,
                                               std::optional<Offset> high_watermark = {});
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  const TopicPartition& id() const noexcept { return id_; }
  const TopicConfig& config() const noexcept { return config_; }
  /// What is appended, and kept, from now on follows it.
  void set_config(const TopicConfig& config);
  const Uuid& topic_id() const noexcept { return topic_id_; }
  Epoch leader_epoch() const noexcept { return leader_epoch_; }
  const Recovery& recovery() const noexcept { return recovery_; }
  PartitionOffsets offsets() const noexcept;
  Offset log_start() const noexcept { return log_->bounds().start; }
  Offset log_end() const noexcept { return log_->bounds().end; }
  std::vector<SegmentInfo> segments() const { return log_->segments(); }
  Offset high_watermark() const noexcept { return high_watermark_; }
  /// Everything below it is on stable storage.
  Offset recovery_point() const noexcept { return log_->bounds().recovery_point; }
  const PartitionTraffic& traffic() const noexcept { return traffic_; }
  /// The storage refused the last append (the disk is full, say), or a write was lost and the log
  /// takes no more.
  bool failing() const noexcept { return append_failed_ || write_failed_; }
  /// As a follower it has not been able to store anything for a while, or never will again.
  bool cannot_follow() const noexcept;
  /// It is going away: what is asked of it is refused.
  bool closing() const noexcept { return closing_; }

  // ---- roles (partition_replica.cc) ----

  /// From here on it leads, or goes on leading by what is newer; what is older changes nothing.
  Task<> lead(Leadership leadership);
  /// From here on it follows whoever leads in `leader_epoch`, or waits until somebody does (not
  /// `led`). Those who wait for the high watermark are answered that it does not lead.
  Task<> follow(Epoch leader_epoch, bool led = true);
  /// This replica is the leader, as far as it knows.
  bool leading() const noexcept { return leading_; }
  /// It is, and nobody else can be: what is acknowledged or served needs that.
  bool serving() const noexcept { return !closing_ && sole_leader(); }
  /// Null where it is alone, or does not lead.
  const ReplicaSet* replicas() const noexcept { return replicas_.get(); }

  /// Of what is sent from now on.
  void set_send_limits(SendLimits limits) { send_limits_ = std::move(limits); }
  /// How long nothing is sent to a follower.
  Duration held_back(std::int32_t replica) const;

  /// A leader's in-sync set, if it is to be another one: it is asked for until the answer comes. It
  /// is the set without the leader where its storage takes no more, and somebody else is in sync.
  std::optional<WantedInSync> want_in_sync(LagLimits limits);
  /// The controller has refused it, for good.
  void refuse_in_sync();

  /// Where a follower fetches from. Errc::fenced when it does not follow in `leader_epoch`, here
  /// and below.
  Result<FollowerStep> following(Epoch leader_epoch) const;
  /// Takes over what the leader has answered: the same bytes, where their crc is right and their
  /// offsets go on where the log ends; its start and its high watermark. Where it says that the
  /// logs diverge, the tail goes.
  Task<FollowerStep> take_over(Epoch leader_epoch, PartitionFetched fetched);
  /// Nothing of the log is in the leader's: it begins anew at the leader's start.
  Task<FollowerStep> begin_anew(Epoch leader_epoch, Offset start);

  /// Validates and appends. `dispatched` resolves when the batches' place is fixed (or the request
  /// is refused); `done` when the acknowledgement that `acks` asks for may be given: written, and
  /// for acks=all below the high watermark, or REQUEST_TIMED_OUT.
  Producing produce(const PartitionRecords& records, ProduceContext context);

  /// Appends a V2 batch that the broker has made, at once: before requests that are still being
  /// prepared. Its records are not checked.
  Checked<OwnAppend> append_own(const Buffer& batch);
  /// Ends a producer's transaction here (KIP-98).
  Checked<OwnAppend> append_marker(std::int64_t producer_id, std::int16_t producer_epoch,
                                   const TransactionMarker& marker);
  /// Completes when the high watermark has reached `end`; Errc::closed when the partition goes.
  Task<> reached(Offset end);

  /// Batches from `request.from` to the high watermark (or last stable offset), as file ranges
  /// where the storage has them. Completes without suspension when nothing needs the disk.
  Task<PartitionFetched> read(PartitionFetch request, ReadContext context);

  /// The same as they are stored, and up to the log's end: for who keeps his state in this log.
  /// Errc::out_of_range when `from` is not in it, Errc::closed when the partition goes.
  Task<Payload> read_own(Offset from, std::uint64_t bytes_max);
  /// What an aggregate has kept of its state beside the log, oldest first. A snapshot stands on
  /// records that are on stable storage: no crash takes what it was made from.
  Task<std::vector<AuxEntry>> aggregate_snapshots();
  Task<> put_aggregate_snapshot(Offset at, Buffer value);

  /// `watch` is told of every move of the offsets until anything beyond `from` is readable or the
  /// partition goes away; at once when that is so already.
  void watch(PartitionWatch& watch, Offset from, Horizon horizon);
  /// How far who sees so far can read.
  Offset readable_end(Horizon horizon) const noexcept;

  Task<PartitionOffsetFound> find_offset(PartitionOffsetQuery query, Isolation isolation);
  /// EpochCache::end_of, whoever asks.
  EpochCache::Entry epoch_end(Epoch epoch) const;
  PartitionEpochEnd epoch_end(PartitionEpochQuery query) const;

  /// Moves the log's start, up to the high watermark; whole segments below it go. The start is
  /// durable once it is checkpointed.
  Task<PartitionTrimmed> trim(PartitionTrim wanted);
  /// Waits, for at most `limit`, until no replica in sync begins before `start`: only then do
  /// records below it not come back, whoever leads.
  Task<PartitionTrimmed> trimmed_everywhere(Offset start, Duration limit);
  /// Bytes of all segments.
  std::uint64_t bytes() const noexcept { return log_->bounds().bytes; }
  /// What is remembered of idempotent and transactional producers, by id.
  std::vector<ProducerInfo> producers() const { return producers_.describe(); }

  // ---- compaction (partition_compaction.cc) ----

  /// What compaction could clean now. `checkpointed` is up to where it had come when the broker
  /// last ran, if that is known; once this has been asked, the partition knows it by itself. Rolls
  /// the active segment where it keeps records that are overdue.
  Task<CompactionNeed> compaction_need(std::optional<Offset> checkpointed);
  /// One pass, which ends early with Errc::cancelled once `stopping` says so or the topic is not
  /// compacted any more, with Errc::closed where the partition goes, and with Errc::conflict where
  /// its log is cut meanwhile. One at a time.
  Task<CompactionDone> compact(CompactionMeans means, std::function<bool()> stopping);
  const CompactionStatus& compaction() const noexcept { return compaction_; }

  /// Retention, expiry of producers, snapshots after a roll. Called every
  /// log.retention.check.interval.ms.
  Task<> maintain();
  /// Stops taking requests (NOT_LEADER_OR_FOLLOWER), fails waiting ones, snapshots, closes the log.
  /// When its scope is cancelled it ends soon, and the log is checked when it is opened again.
  Task<> close();
  /// As close(), but stores nothing: its log is about to be removed.
  Task<> abandon();

  /// For tests: while held, the high watermark stays where it is, however much is written.
  void hold_high_watermark(bool held);

 private:
  static constexpr Duration hand_over_after_min = std::chrono::seconds(3);
  static constexpr Duration hand_over_after_max = std::chrono::minutes(10);
  static constexpr Duration cannot_follow_after = std::chrono::seconds(1);

  // What an append, or a batch recognised as appended before, will be answered.
  struct Appended {
    std::uint64_t term = 0;
    PartitionProduced answer;
    Offset end;                    // acknowledged once this much is written
    std::optional<Ticket> ticket;  // none: nothing was written
    bool flush_due = false;
  };
  using Prepared = Checked<std::vector<ReadyBatch>>;
  struct Kept {
    Prepared prepared;
    MemoryBudget::Lease memory;  // for what is not a slice of the request
  };
  // A request whose batches are being prepared, or stand behind such a one.
  struct Queued {
    Pending<Kept> prepared;
    ProduceContext context;
    Gate::Pass pass;
    Resolver<> released;
    Resolver<PartitionProduced> done;
  };

  Partition(PartitionHost host, TopicPartition id, Uuid topic_id, const TopicConfig& config,
            Epoch leader_epoch, std::unique_ptr<PartitionLog> log,
            std::optional<Offset> high_watermark);

  bool sole_leader() const noexcept {
    return leading_ && (!host_.lease || host_.lease->holds(host_.shard.now()));
  }
  Timestamp now() const noexcept { return host_.environment.clock().wall(); }
  ErrorCode check_leader(Epoch current) const noexcept;
  ErrorCode check_epoch(Epoch current) const noexcept;
  Task<> end_running();
  PartitionProduced refused(Refusal refusal, Offset log_start = {}) const;

  // partition_produce.cc
  std::optional<Refusal> check_context(const ProduceContext& context);
  std::optional<Refusal> check_in_sync(ErrorCode error) const;
  Producing enqueue(Intake intake, ProduceContext context, Gate::Pass pass);
  Task<Kept> prepare_on_worker(Intake intake);
  Task<> drain();
  Task<Prepared> place_sets(std::vector<ReadyBatch> batches);
  Checked<Appended> append(const std::vector<ReadyBatch>& batches);
  Checked<Appended> append_new(const std::vector<ReadyBatch>& batches);
  Task<Checked<Appended>> append_in_turns(Prepared prepared);
  Checked<Appended> not_taken(const Error& error);
  WriteAheadLog* log_in_turns(std::size_t bytes) const noexcept;
  bool appends_anew(const std::vector<ReadyBatch>& batches) const;
  std::vector<BatchParts> place(const std::vector<ReadyBatch>& batches, Offset base);
  Task<PartitionProduced> acknowledge(Gate::Pass pass, Appended appended, ProduceContext context);
  Task<> settle(const Appended& appended);
  Task<> reach_high_watermark(Offset end, std::uint64_t term);
  void advance(Offset written_end);
  void move_high_watermark(Offset to);

  // partition_own.cc
  Task<> settle_own(Gate::Pass pass, Appended appended);
  OwnAppend own(Gate::Pass pass, Appended appended);

  // partition_replica.cc
  RateLimit* send_limit(std::int32_t replica) const noexcept;
  void tell_unclean(Offset end) const;
  void append_taken(bool taken);
  void lose_write();
  bool shall_hand_over() const noexcept { return write_failed_ || hand_over_; }
  void ask_for_relief();
  void count_lost(Offset from, Offset below) const;
  ErrorCode note_follower(const PartitionFetch& request, const ReadContext& context,
                          PartitionFetched& answer);
  Task<> append_fetched(PartitionFetched fetched);
  Task<> append_as_they_are(Buffer records);
  Task<> truncate_to(Offset end);
  Task<> forget_producers();
  Task<> drop_snapshots(Offset end);

  // partition_admin.cc
  Task<> reach_start(Offset start);

  // partition_read.cc
  Task<Payload> read_log(PartitionFetch request, ReadContext context);
  Task<Payload> read_converted(PartitionFetch request, ReadContext context);
  ErrorCode read_failure(const PartitionFetch& request, const Error& error) const;
  std::vector<Offset> segment_starts(const PartitionOffsetQuery& query, Offset limit) const;
  Task<std::optional<FoundRecord>> find_record(Timestamp time, Offset limit);
  Task<Timestamp> max_timestamp();
  void notify_watches();

  // partition_compaction.cc
  Task<Timestamp> oldest_dirty(CleanableRange range);
  Timestamp after_retention() const;
  Timestamp within_retention() const;
  bool tombstones_due() const;
  Task<CleanableRange> range_of_pass();
  Task<CompactionDone> run_compaction(CompactionMeans means, std::function<bool()> stopping);
  CleanableRange cleanable() const;
  Task<> commit_rewrite(LogRewrite* rewrite);
  Task<> forget_aborted(std::vector<Offset> markers);
  void note_cut(Offset end);

  // partition_upkeep.cc
  Task<> recover();
  Task<> restore();
  Task<bool> restore_aborted();
  Task<Offset> restore_producers();
  Task<bool> restore_epochs();
  Task<> replay(Offset from, Offset new_from);
  void take_note(const BatchHeader& header, const std::optional<TransactionMarker>& marker);
  Task<> store_state();
  Task<> store_epochs();
  Task<> store_aborted();
  Task<> cut_aborted(Offset from);
  Task<> store_producers();
  Task<> apply_retention();
  Task<> move_start(Offset first_kept);
  Task<> flush_to(Offset end);
  Task<> flush_later(Gate::Pass pass);
  void schedule_flush();
  void flush_recovered();

  PartitionHost host_;
  TopicPartition id_;
  Uuid topic_id_;
  TopicConfig config_;
  Epoch leader_epoch_;
  bool leading_ = true;
  bool led_ = false;        // by another replica
  std::uint64_t term_ = 0;  // one more whenever it ceases to lead
  std::unique_ptr<ReplicaSet> replicas_;
  SendLimits send_limits_;
  std::int32_t partition_epoch_ = -1;  // of the state that it leads by
  Mutex role_;  // it changes, or a follower takes something over: one at a time
  Recovery recovery_;
  PartitionTraffic traffic_;
  std::unique_ptr<PartitionLog> log_;

  ProducerStates producers_;
  AbortedTransactions aborted_;
  EpochCache epochs_;
  Offset written_end_;
  Offset high_watermark_;
  Offset leaders_high_watermark_;  // as its leader has told, who may have more than is here
  bool high_watermark_held_ = false;
  bool closing_ = false;
  bool append_failed_ = false;  // the last one
  bool write_failed_ = false;   // a write was lost after it had been given offsets
  bool hand_over_ = false;      // appends have failed for too long
  MonoTime append_failing_since_{};
  Duration hand_over_after_ = hand_over_after_min;  // longer each time: where all disks are full
  MonoTime asked_for_relief_{};

  std::deque<Queued> queue_;
  bool draining_ = false;
  Event high_watermark_moved_;  // or closing
  Event starts_moved_;          // of followers, or who they are, or closing
  PartitionWatches watches_;

  bool flushing_ = false;
  bool flush_scheduled_ = false;
  Event flushed_;
  Offset flush_from_;         // records from here on count towards flush.messages
  Offset snapshot_segment_;   // base of the active segment when the last snapshot was taken
  Offset snapshot_at_{0};     // where that was; nothing is known of an empty log
  Offset aborted_stored_{0};  // aborted transactions that ended below it are stored
  std::string epochs_stored_;
  Mutex segments_stay_;  // while files are put beside segments, or segments are replaced
  CompactionStatus compaction_;
  bool retention_due_ = false;  // once the pass has ended
  std::uint64_t cuts_ = 0;      // of the log's tail, or all of it
  Offset oldest_dirty_in_;      // the segment that this is about
  Timestamp oldest_dirty_;
  Gate running_;
  CancelScope background_;
};

}  // namespace millrace::kernel
