// What the daemon asks of its process before anything else runs in it.
#pragma once

#include <csignal>

#include <millrace/observe.h>

namespace millrace::kernel {

/// Signals are taken by the main thread alone, which waits for them: they are blocked from now on.
/// Make it before any other thread starts.  [main thread]
class Signals {
 public:
  Signals();
  /// SIGTERM, SIGINT or SIGHUP.
  int wait() const;

 private:
  sigset_t set_;
};

/// Whoever started us may have closed stdin, stdout or stderr. Left so, the first sockets and files
/// would get their numbers, and log lines would be written into them: /dev/null takes their place.
/// [main thread, before anything is opened]
void fill_standard_descriptors() noexcept;

/// A connection and a segment need a descriptor each: takes as many as the system lets us have.
void raise_open_files_limit(const Log& log);

}  // namespace millrace::kernel
