// One partition on one shard: checks what producers send, gives it offsets, keeps the high watermark
// and the last stable offset, answers reads below them. The log itself is the storage plugin's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/broker.h>
#include <millrace/codec.h>
#include <millrace/environment.h>
#include <millrace/observe.h>
#include <millrace/storage.h>

#include "kernel/partition/fetch_waiter.h"
#include "kernel/partition/topic_config.h"

namespace millrace::kernel {

/// What a partition uses and does not own; outlives it.
struct PartitionHost {
  Environment& environment;
  Shard& shard;
  Storage& storage;
  const Codecs& codecs;
  Log log;
};

struct ProduceContext {
  std::int16_t acks = -1;
  Duration timeout{};
  ProduceFeatures features;
};

struct ReadContext {
  Isolation isolation = Isolation::read_uncommitted;
  std::int8_t newest_magic = 2;
  bool zstd = true;
  std::uint64_t bytes_max = 0;  ///< what is left of the request's limit
  bool at_least_one = false;    ///< the first partition with data answers one batch, however large
};

/// Offsets as clients see them: log_start <= last_stable <= high_watermark <= end.
struct PartitionOffsets {
  Offset log_start;
  Offset last_stable;
  Offset high_watermark;
  Offset end;
};

/// [its shard]
class Partition {
 public:
  /// Opens the log, restores producer state from the newest snapshot and the batches behind it.
  static Task<std::unique_ptr<Partition>> open(PartitionHost host, TopicPartition id,
                                               Uuid topic_id, TopicConfig config,
                                               Epoch leader_epoch);
  virtual ~Partition() = default;

  virtual const TopicPartition& id() const noexcept = 0;
  virtual const TopicConfig& config() const noexcept = 0;
  virtual void set_config(TopicConfig config) = 0;
  virtual Epoch leader_epoch() const noexcept = 0;
  virtual PartitionOffsets offsets() const noexcept = 0;

  /// Validates and appends. `dispatched` resolves when the batches' place is fixed (or the request
  /// is refused); `done` when the acknowledgement that `acks` asks for may be given: written, and for
  /// acks=all below the high watermark, or REQUEST_TIMED_OUT.
  virtual Call<PartitionProduced> produce(PartitionRecords records, ProduceContext context) = 0;

  /// Batches from `request.from` to the high watermark (or last stable offset), as file ranges where
  /// the storage has them. Completes without suspension when nothing needs the disk.
  virtual Task<PartitionFetched> read(PartitionFetch request, ReadContext context) = 0;

  /// `waiter` is notified once anything beyond `from` becomes readable, or the partition goes away.
  /// Notified at once when that is so already.
  virtual void add_waiter(Offset from, Isolation isolation, std::shared_ptr<FetchWaiter> waiter) = 0;
  virtual void remove_waiter(const FetchWaiter& waiter) noexcept = 0;

  virtual Task<PartitionOffsetFound> find_offset(PartitionOffsetQuery query,
                                                 Isolation isolation) = 0;

  /// Retention, rolling by time, flush.ms, snapshots. Called every few seconds.
  virtual Task<> maintain() = 0;
  /// Stops taking requests (NOT_LEADER_OR_FOLLOWER), fails waiting ones, snapshots, closes the log.
  virtual Task<> close() = 0;

  /// For tests: while held, the high watermark stays where it is, however much is written.
  virtual void hold_high_watermark(bool held) = 0;
};

}  // namespace millrace::kernel
