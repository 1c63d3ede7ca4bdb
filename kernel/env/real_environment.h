// The outside as it is: threads with their loops, sockets, files, the system's clock and chance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <millrace/environment.h>
#include <millrace/observe.h>

namespace millrace::kernel {

struct EnvironmentSettings {
  unsigned shards = 1;
  unsigned workers = 2;
  std::optional<int> send_buffer_bytes{};  ///< of accepted connections; none: the system's choice
};

/// Runs from start() to stop(); both belong to a thread of the caller (main), never to one of its
/// own. What it handed out (streams, files, timers) must be gone before it is destroyed.
class RealEnvironment final : public Environment {
 public:
  /// Starts the threads mr-shard-0…, mr-control and mr-worker-0…
  /// `metrics` outlives it.
  static Result<std::unique_ptr<RealEnvironment>> start(EnvironmentSettings settings,
                                                        const Log& log, Metrics& metrics);
  ~RealEnvironment() override;

  /// Ends the threads: the workers once everything submitted is done, then the loops. What is left
  /// then runs in the caller's thread: posted jobs, and coroutines, whose waits for timers and
  /// sockets are cancelled. So nothing of a shard ends in a foreign thread. Idempotent.
  void stop();
  /// After stop(): forgets the coroutines that have been woken since, by what the caller has
  /// destroyed, for they would find nothing of it any more. How many: each is a mistake of whoever
  /// let it wait for something beyond the end of that.
  std::size_t forget_woken() noexcept;

  Clock& clock() noexcept override;
  Random& random() noexcept override;
  Network& network() noexcept override;
  FileSystem& files() noexcept override;
  BlockingPool& workers() noexcept override;
  std::span<Shard* const> shards() noexcept override;
  Shard& control() noexcept override;

  /// Tasks that ended with an error nobody awaited, on all shards.  [any thread]
  std::uint64_t tasks_failed() const noexcept;
  /// Workers that a job keeps for long; after stop(), for ever: the process should end without
  /// tearing down what they use.  [any thread]
  unsigned threads_lent() const;

 private:
  struct Parts;
  explicit RealEnvironment(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace millrace::kernel
