// The fetch sessions that one shard keeps, a bounded number. Who may displace whom is KIP-227's
// rule: unused sessions go first; one that is old enough gives way to a larger one; followers come
// before consumers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include <millrace/environment.h>
#include <millrace/observe.h>

#include "kernel/broker/fetch_session.h"

namespace millrace::kernel {

/// Of the caches of all shards together.  [any thread]
struct FetchSessionMetrics {
  explicit FetchSessionMetrics(Metrics& metrics)
      : open(metrics.gauge("millrace_fetch_sessions", "Fetch sessions that are kept")),
        displaced(metrics.counter("millrace_fetch_sessions_displaced_total",
                                  "Fetch sessions that gave way to others")),
        refused(metrics.counter("millrace_fetch_sessions_refused_total",
                                "Fetches that got no session because none gave way")) {}
  Gauge& open;
  Counter& displaced;
  Counter& refused;
};

/// [its shard]
class FetchSessionCache {
 public:
  /// After so long without use a session may be displaced by any other, and at such an age by a
  /// larger one.
  static constexpr Duration displaceable_after = std::chrono::seconds(120);

  /// This is the cache of shard `shard` of `shards`.
  FetchSessionCache(std::size_t slots, std::size_t shard, std::size_t shards, Random& random,
                    FetchSessionMetrics metrics)
      : slots_(slots), shard_(shard), shards_(shards), random_(random), metrics_(metrics) {}

  /// The shard, of `shards`, that keeps session `id`.
  static std::size_t shard_of(std::int32_t id, std::size_t shards) noexcept {
    return static_cast<std::uint32_t>(id) % shards;
  }

  std::shared_ptr<FetchSession> find(std::int32_t id) const;
  /// Keeps `session` and gives it an id, if there is room or somebody gives way to it.
  bool add(std::shared_ptr<FetchSession> session, MonoTime now);
  void remove(std::int32_t id) {
    metrics_.open.add(-static_cast<std::int64_t>(sessions_.erase(id)));
  }
  void clear() {
    metrics_.open.add(-static_cast<std::int64_t>(sessions_.size()));
    sessions_.clear();
  }
  std::size_t size() const noexcept { return sessions_.size(); }

 private:
  using Sessions = std::map<std::int32_t, std::shared_ptr<FetchSession>>;

  Sessions::iterator who_gives_way(const FetchSession& newcomer, MonoTime now);
  std::int32_t new_id();

  std::size_t slots_;
  std::size_t shard_;
  std::size_t shards_;
  Random& random_;
  FetchSessionMetrics metrics_;
  Sessions sessions_;
};

}  // namespace millrace::kernel
