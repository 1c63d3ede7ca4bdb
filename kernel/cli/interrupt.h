// Ctrl-C while there is something to tidy up.
#pragma once

namespace millrace::kernel::cli {

/// While there is one, the first SIGINT or SIGTERM is only noted; the second ends the process.
/// However many SIGHUP are one: of a closed terminal the shell tells, and the kernel again when the
/// shell has ended. One that was ignored before, as of what runs in the background, stays ignored.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool asked() const noexcept;
  /// Once all is tidy: the process ends as of the signal that came, so that its caller learns of
  /// it.
  void finish() const;

  /// Below run(), whose thread waits for signals: whether somebody tidies up, who is told then. Not
  /// a second time, but for SIGHUP, and not once all is tidy.
  static bool take(int signal) noexcept;
};

}  // namespace millrace::kernel::cli
