// What the daemon asks of its process before anything else runs in it.
#pragma once

#include <csignal>
#include <optional>

#include <pthread.h>

#include <millrace/observe.h>
#include <millrace/types.h>

namespace millrace::kernel {

/// Signals are taken by the main thread alone, which waits for them: they are blocked from now on.
/// Make it before any other thread starts, and before anything that takes time: until then a SIGHUP
/// would end the process.  [main thread]
class Signals {
 public:
  Signals();
  /// SIGTERM, SIGINT, SIGHUP, or `woken`.
  int wait() const;
  /// The same, or none when the time is over.
  std::optional<int> wait_for(Duration limit) const;
  /// Ends a wait, or the next one.  [any thread]
  void wake() const noexcept;

  static constexpr int woken = SIGUSR1;

 private:
  sigset_t set_;
  pthread_t main_;
};

/// Whoever started us may have closed stdin, stdout or stderr. Left so, the first sockets and files
/// would get their numbers, and log lines would be written into them: /dev/null takes their place.
/// [main thread, before anything is opened]
void fill_standard_descriptors() noexcept;

/// A connection and a segment need a descriptor each: takes as many as the system lets us have.
void raise_open_files_limit(const Log& log);

}  // namespace millrace::kernel
