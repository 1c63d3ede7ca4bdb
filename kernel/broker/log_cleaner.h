// Looks after compaction on all shards: which partition is cleaned next, how many at once, how
// fast, and what is told of it. What goes wrong with one partition stops no other, and is tried
// again.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <millrace/shard.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/partitions.h"

namespace millrace::kernel {

/// What Kafka's log.cleaner.* are worth now.
struct LogCleanerSettings {
  bool enable = true;
  std::int64_t threads = 1;
  Duration backoff = std::chrono::seconds(15);
  std::int64_t io_bytes_per_second = RateLimit::unlimited;
  CompactionMeans means;

  /// Of a broker's settings; what is not set has its default.
  static LogCleanerSettings of(const ConfigMap& settings);
};

/// [control thread]
class LogCleaner {
 public:
  /// `settings` says what the broker's are now, `folder` where its data is. All of it outlives
  /// this.
  LogCleaner(BrokerParts& parts, PartitionMap& partitions, std::function<ConfigMap()> settings,
             std::string folder);

  /// What has failed is tried again after this long; what ended early, after a backoff. What the
  /// disk did not take is tried sooner: at once when there is room, else after a backoff, then
  /// after twice as long, up to this.
  static constexpr Duration uncleanable_pause = std::chrono::minutes(10);

  void start();
  /// Ends passes soon, and waits for them.
  Task<> close();

 private:
  using Offsets = std::map<TopicPartition, Offset>;

  struct Seen {
    TopicPartition id;
    CompactionNeed need;
    Offset cleaned_to;
    std::uint64_t room = 0;  // what a pass takes of the disk at once, at most
  };
  // A partition whose last pass has not come to its end.
  struct Waiting {
    MonoTime until;
    Duration pause{};                         // before the next try, where the disk failed
    std::optional<std::uint64_t> free_bytes;  // of the disk, when it failed
  };

  Task<> loop();
  Task<> turn();
  Task<> until_next_turn();
  Task<std::vector<Seen>> look();
  static Task<std::vector<Seen>> look_on(ShardState* state, std::shared_ptr<const Offsets> noted);
  void want(const std::vector<Seen>& seen);
  void begin_passes();
  void begin(const TopicPartition& id);
  Task<> clean(Gate::Pass inside, TopicPartition id, CompactionMeans means);
  void note(const TopicPartition& id, const CompactionDone& done, Duration took);
  void note(const TopicPartition& id, const Error& error, std::optional<std::uint64_t> free_bytes);
  Task<std::optional<std::uint64_t>> free_bytes() const;
  Task<> checkpoint(const std::vector<Seen>& seen);
  void tell(const std::vector<Seen>& seen);
  bool may_begin(const Seen& one) const;
  MonoTime now() const { return parts_.environment.control().now(); }

  struct Told {
    explicit Told(Metrics& metrics);
    Gauge& uncleanable_partitions;
    Gauge& uncleanable_bytes;
    Gauge& dirty_percent_max;
    Gauge& overdue_ms_max;
    Gauge& running;
    Gauge& last_run;
    Gauge& map_percent;
    Gauge& recopy_percent;
    Gauge& dead_threads;
    Counter& passes;
    Counter& bytes_read;
    Counter& bytes_written;
    Counter& bytes_removed;
    Counter& records_removed;
  };

  BrokerParts& parts_;
  PartitionMap& partitions_;
  std::function<ConfigMap()> settings_of_;
  const std::string folder_;
  LogCleanerSettings settings_;
  OffsetMap::Secret secret_{};
  RateLimit rate_;
  Told told_;
  std::shared_ptr<const Offsets> noted_;  // as checkpointed last; null: not read yet
  std::deque<TopicPartition> wanted_;     // the next one first, as the last look has found them
  std::set<TopicPartition> cleaning_;
  std::map<TopicPartition, Waiting> waiting_;
  std::optional<std::uint64_t> free_now_;  // asked for while something waits for room
  std::set<TopicPartition> uncleanable_;
  std::shared_ptr<std::atomic<bool>> stopping_ = std::make_shared<std::atomic<bool>>(false);
  Event ended_;               // a pass
  bool ended_since_ = false;  // that was asked
  CancelScope background_;
  Gate running_;
};

}  // namespace millrace::kernel
