// Memory for the frames of one shard's requests.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include <millrace/shard.h>

namespace millrace::kafka_transport {

/// A frame is paid for before it is read. Large ones wait in a line of their own and hold no more
/// than seven eighths while their bytes are on the way: however slowly those come, and however many
/// wait, small ones find room. Once a frame is there, only this broker decides how long its memory
/// is held, and all of them wait in one line, so that nothing starves.  [its shard]
class RequestMemory {
 public:
  /// `waited_for` is called when somebody has to wait.
  RequestMemory(MemoryBudget& budget, std::function<void()> waited_for)
      : budget_(budget), arriving_(part_for_large(budget)), waited_for_(std::move(waited_for)) {}
  RequestMemory(const RequestMemory&) = delete;
  RequestMemory& operator=(const RequestMemory&) = delete;

  struct Lease {
    MemoryBudget::Lease frame;
    MemoryBudget::Lease arriving;  ///< until the frame is there
  };
  Task<Lease> acquire(std::size_t bytes);
  /// As acquire(), of one that is not large: most are not, and this is one coroutine less.
  Task<MemoryBudget::Lease> acquire_small(std::size_t bytes) { return acquire_of(budget_, bytes); }
  bool is_large(std::size_t bytes) const noexcept { return bytes > budget_.bytes_max() / 64; }
  /// Those that wait.
  std::size_t waiting() const noexcept { return budget_.waiting() + arriving_.waiting(); }

 private:
  static std::size_t part_for_large(const MemoryBudget& budget) noexcept {
    return budget.bytes_max() - budget.bytes_max() / 8;
  }
  /// Tells of a wait that is about to begin.
  Task<MemoryBudget::Lease> acquire_of(MemoryBudget& budget, std::size_t bytes);

  MemoryBudget& budget_;
  MemoryBudget arriving_;
  const std::function<void()> waited_for_;
};

}  // namespace millrace::kafka_transport
