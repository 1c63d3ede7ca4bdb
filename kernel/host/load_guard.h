// What a process says that ends because it has mapped a damaged file.
#pragma once

#include <array>
#include <csignal>
#include <string>

namespace millrace::kernel {

/// While there is one, a signal that means a bug is told on stderr with the file that is being
/// mapped, and ends the process with `exit_code`; where none is, it does what it did before. One at
/// a time.  [start-up]
class LoadGuard {
 public:
  LoadGuard(const std::string& program, int exit_code);
  ~LoadGuard();
  LoadGuard(const LoadGuard&) = delete;
  LoadGuard& operator=(const LoadGuard&) = delete;

  static constexpr std::array signals{SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

 private:
  std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace millrace::kernel
