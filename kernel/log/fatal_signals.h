// What a process still says when it dies by its own fault.
#pragma once

#include "kernel/log/stderr_log.h"

namespace millrace::kernel {

/// While there is one, a signal that means a bug (an assertion, a bad access) lets the lines of the
/// log be written, for at most half a second, and tells where in which thread it came, before it
/// does what it did before. One at a time.
/// [main thread]
class LogBeforeFatalSignals {
 public:
  explicit LogBeforeFatalSignals(const StderrLog& log);
  ~LogBeforeFatalSignals();
  LogBeforeFatalSignals(const LogBeforeFatalSignals&) = delete;
  LogBeforeFatalSignals& operator=(const LogBeforeFatalSignals&) = delete;
};

}  // namespace millrace::kernel
