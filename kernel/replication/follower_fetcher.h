// Pulls what one leader has of many partitions into the replicas here: one connection, one fetch
// session that names only what has changed, a long poll that costs nothing while all of them rest.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/observe.h>
#include <millrace/peers.h>
#include <millrace/shard.h>

#include "kernel/env/backoff.h"
#include "kernel/partition/partition.h"

namespace millrace::kernel {

/// Kafka's names.
struct FetchSettings {
  Duration wait_max = std::chrono::milliseconds(500);  ///< replica.fetch.wait.max.ms
  std::int32_t bytes_min = 1;                          ///< replica.fetch.min.bytes
  std::int32_t partition_bytes_max = 1 << 20;          ///< replica.fetch.max.bytes
  std::int32_t bytes_max = 10 << 20;                   ///< replica.fetch.response.max.bytes
  Duration backoff_max = std::chrono::seconds(1);      ///< replica.fetch.backoff.ms
};

/// What fetchers use and do not own.
struct FetcherHost {
  Shard& shard;
  PeerLink& peers;
  Log log;
  std::int32_t broker = -1;
  FetchSettings settings;
  /// Where a broker is now; none while it is not known to live.
  std::function<std::optional<Address>(std::int32_t)> address_of;
  /// Of our lease.
  std::function<std::int64_t()> broker_epoch;
};

/// [the shard of its partitions]
class FollowerFetcher {
 public:
  /// `limit`: what all that it fetches is held back by; outlives it.
  FollowerFetcher(const FetcherHost& host, std::int32_t leader, RateLimit* limit = nullptr);
  FollowerFetcher(const FollowerFetcher&) = delete;
  FollowerFetcher& operator=(const FollowerFetcher&) = delete;

  void start();
  /// `partition` follows the leader in `epoch`. Where it is fetched already, it goes on.
  void add(std::shared_ptr<Partition> partition, Epoch epoch);
  void remove(const TopicPartition& id);
  /// Addresses have changed: who waits for one looks again.
  void brokers_changed();
  /// Ends what is under way; nothing is fetched afterwards.
  Task<> close();

 private:
  struct Follower {
    std::shared_ptr<Partition> partition;
    Epoch epoch;
    bool due = true;     // the session does not know where it is
    bool named = false;  // it is in the session
    bool removed = false;
    FollowerStep told{};  // what the session was told last
    Offset told_start;    // likewise
    Backoff backoff;
    ErrorCode trouble = ErrorCode::none;  // as the log was told
    TimerId retry = TimerId::none;
  };
  using FollowerRef = std::shared_ptr<Follower>;

  Task<> run();
  Task<> held_back();
  Task<> fetch_once();
  Task<> connect();
  Task<FetchAnswer> ask(FetchRequest request);
  Duration wait_max() const noexcept;
  std::int32_t at_once(std::int32_t bytes_max) const noexcept;
  FetchRequest make_request();
  void name(FetchRequest& request, const FollowerRef& follower);
  void forget(const TopicPartition& id, const Uuid& topic_id);
  void make_due(const FollowerRef& follower);
  void begin_session() noexcept;
  Task<> take(FetchAnswer answer);
  Task<> take_one(FollowerRef follower, PartitionFetched fetched);
  Task<FollowerStep> take_over(const Follower& follower, PartitionFetched fetched);
  void retry_later(const FollowerRef& follower, ErrorCode error, const std::string& why);
  FollowerRef find(const TopicName& topic, std::int32_t partition) const;
  void interrupt();
  void tell(const Error& error);

  const FetcherHost& host_;
  std::int32_t leader_;
  RateLimit* limit_;
  std::map<TopicPartition, FollowerRef> followers_;
  std::map<Uuid, std::string> names_;
  std::vector<FollowerRef> due_;
  std::vector<TopicForgotten> forgotten_;

  std::unique_ptr<Peer> peer_;
  std::optional<Address> address_;  // that it is connected to
  std::int32_t session_id_ = 0;
  std::int32_t session_epoch_ = 0;  // 0: it is to be opened
  bool first_poll_ = true;
  std::size_t retrying_ = 0;        // those that wait for their time to try again
  CancelScope* polling_ = nullptr;  // the poll that may be interrupted
  bool interrupted_ = false;
  Backoff backoff_;
  std::string trouble_;  // as the log was told
  Event changed_;
  CancelScope scope_;
  Gate running_;
};

}  // namespace millrace::kernel
