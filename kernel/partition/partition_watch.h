// Following a partition: what fetches and fetch sessions register, once, to learn that there is
// more to read or that its offsets have moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <millrace/types.h>

namespace millrace::kernel {

/// How far a reader sees: a client to the high watermark, or to the last stable offset; a follower
/// to the end of what is written.
enum class Horizon : std::uint8_t { high_watermark, last_stable, written };

constexpr Horizon horizon_of(Isolation isolation) noexcept {
  return isolation == Isolation::read_committed ? Horizon::last_stable : Horizon::high_watermark;
}

class PartitionWatches;

/// Follows at most one partition at a time; stops when destroyed.  [partition's shard]
class PartitionWatch {
 public:
  PartitionWatch() = default;
  PartitionWatch(const PartitionWatch&) = delete;
  PartitionWatch& operator=(const PartitionWatch&) = delete;

  /// The partition's offsets have moved. `readable`: it has more than was asked about, or it is
  /// going away; the watch has been stopped. Must not touch other watches of the partition.
  virtual void on_change(bool readable) = 0;
  void stop() noexcept;

 protected:
  ~PartitionWatch() { stop(); }

 private:
  friend class PartitionWatches;
  PartitionWatches* followed_ = nullptr;
  std::size_t at_ = 0;  // in the list of those who follow it
  Offset from_;
  Horizon horizon_ = Horizon::high_watermark;
};

/// Those who follow one partition.  [partition's shard]
class PartitionWatches {
 public:
  PartitionWatches() = default;
  PartitionWatches(const PartitionWatches&) = delete;
  PartitionWatches& operator=(const PartitionWatches&) = delete;
  ~PartitionWatches();

  bool empty() const noexcept { return watches_.empty(); }
  /// Tells `watch` of every move, until something is readable beyond `from`.
  void add(PartitionWatch& watch, Offset from, Horizon horizon);
  /// Tells everybody. `readable_end` says how far each horizon reaches.
  template <class F>
  void notify(F readable_end) {
    for (std::size_t at = 0; at < watches_.size();) {
      auto& watch = *watches_[at];
      const bool readable = readable_end(watch.horizon_) > watch.from_;
      if (readable) {
        watch.stop();  // another one takes its place
      } else {
        ++at;
      }
      watch.on_change(readable);
    }
  }
  /// The partition goes away: all are told that it is readable, for they will find out.
  void release();

 private:
  friend class PartitionWatch;
  std::vector<PartitionWatch*> watches_;
};

}  // namespace millrace::kernel
