// The aggregate of one led partition: loaded when the partition is opened, from the newest snapshot
// and the events behind it; loaded anew when it fails; replaced by another version that is loaded
// beside it; dropped with the partition.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kernel/env/backoff.h"
#include "kernel/streams/aggregate_instance.h"

namespace millrace::kernel {

/// [partition's shard]. Held by the shard's list and by what it has under way.
class AggregateRunner final : public std::enable_shared_from_this<AggregateRunner>,
                              public AggregateOwner {
 public:
  enum class State { loading, serving, failed, ended };

  /// `beside`: the id of the user's topic, where it lives beside one of its partitions.
  AggregateRunner(AggregateHost& host, std::shared_ptr<AggregateFactory> factory,
                  CompressionId compression, ShardState& shard,
                  std::shared_ptr<Partition> partition, std::optional<Uuid> beside);

  /// Begins the first load.
  void start();

  /// Commands are decided in the order of these calls. Those that come during the first load, or
  /// while another version takes over, wait for its end, for a while; refused while it does not
  /// serve.
  void command(std::string_view key, std::unique_ptr<Message> body, ReplyTo reply_to, Asker asker);
  void query(std::string_view key, std::unique_ptr<Message> question, Asker asker);
  void release(ReplyTo reply_to) noexcept;
  void cluster_changed();

  /// Loads what `next` makes, beside the one that runs; nobody notices. An error: it cannot be
  /// loaded, or the partition takes no events now.
  Task<> prepare(std::shared_ptr<AggregateFactory> next);
  /// What was prepared is not wanted.
  void give_up();
  /// What was prepared takes over, and `next` makes whatever is loaded from now on. Who calls
  /// meanwhile waits, as for a load. An error: it has taken over and is not loaded yet.
  Task<> take_over(std::shared_ptr<AggregateFactory> next);

  // AggregateOwner
  void failed(Error why) override;
  void snapshot_due() override;

  State state() const noexcept { return state_; }
  const TopicPartition& id() const noexcept { return partition_->id(); }

  /// Takes no more calls, keeps what makes the next load fast, and drops it.
  Task<> close();
  /// The partition is gone: those who wait are told to look elsewhere.
  void end();

 private:
  using Instance = std::shared_ptr<AggregateInstance>;

  Task<> load(std::shared_ptr<AggregateRunner> self, std::uint64_t life, Instance prepared);
  Task<> complete(AggregateInstance& instance);
  Task<> load_beside(std::shared_ptr<AggregateRunner> self, std::shared_ptr<AggregateFactory> next);
  Task<> change_to(std::shared_ptr<AggregateRunner> self, std::shared_ptr<AggregateFactory> next);
  Task<Instance> load_once(std::shared_ptr<AggregateFactory> maker);
  Task<Instance> restored(std::shared_ptr<AggregateFactory> maker);
  Task<> find_subject();
  Result<Instance> make(std::shared_ptr<AggregateFactory> maker);
  Task<> replay(AggregateInstance& instance);
  void load_later(const Error& why);
  struct Waiting {
    std::string key;
    std::unique_ptr<Message> body;
    std::optional<ReplyTo> reply_to;  // of a command
    Asker asker;
  };

  bool refuse(Asker& asker) const;
  bool may_wait() const;
  void wait(Waiting call);
  void wait_no_more();
  void drop(ErrorCode error, std::string_view detail);

  Task<> store_snapshot(std::shared_ptr<AggregateRunner> self, Offset at, Buffer file);
  bool take_snapshot(Offset& at, Buffer& file);

  AggregateHost& host_;
  std::shared_ptr<AggregateFactory> factory_;
  const CompressionId compression_;  // of its events
  ShardState& shard_;
  std::shared_ptr<Partition> partition_;
  const std::optional<Uuid> beside_;
  TopicPartition subject_;
  State state_ = State::loading;
  std::string why_not_;  // it is not loaded
  Instance instance_;
  Instance prepared_;       // to take its place
  std::uint64_t life_ = 0;  // a load or a wait of an earlier one is in vain
  Backoff backoff_;
  std::deque<Waiting> waiting_;  // for the end of the first load, or of a replacement
  TimerId patience_ = TimerId::none;
  bool patience_over_ = false;
  bool snapshotting_ = false;
  CancelScope scope_;  // of loads
};

}  // namespace millrace::kernel
