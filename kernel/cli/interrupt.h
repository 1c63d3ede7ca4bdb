// Ctrl-C while there is something to tidy up.
#pragma once

namespace millrace::kernel::cli {

/// While there is one, the first SIGINT, SIGTERM or SIGHUP, which a closed terminal sends, is only
/// noted; the second ends the process. One that was ignored before, as of what runs in the
/// background, stays ignored.
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
  /// a second time.
  static bool take(int signal) noexcept;
};

}  // namespace millrace::kernel::cli
