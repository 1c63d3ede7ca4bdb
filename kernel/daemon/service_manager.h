// Who has started this process and looks after it: systemd, or what else speaks the protocol of
// sd_notify(3). That is a datagram of lines and documented for those who send it themselves, as we
// do: it may not hold anybody up here, and to build needs no package that is tied to the version of
// the machine's init.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include <millrace/observe.h>
#include <millrace/types.h>

namespace millrace::kernel {

/// [main thread]
class ServiceManager {
 public:
  /// What it puts into the environment of those that it starts.
  struct Variables {
    std::string notify_socket;  ///< NOTIFY_SOCKET: a path, or '@' and an abstract name
    std::string watchdog_usec;  ///< WATCHDOG_USEC
    std::string watchdog_pid;   ///< WATCHDOG_PID
  };
  static Variables variables();

  /// With no socket named nobody is told anything.
  ServiceManager(const Variables& variables, pid_t self, Log log);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  bool listens() const noexcept { return socket_ >= 0; }
  /// How long it waits for a beat before it ends the process; none: it waits for none.
  std::optional<Duration> watchdog() const noexcept { return watchdog_; }

  void tell_ready() { tell("READY=1"); }
  /// Until tell_ready(). `now`: of the monotonic clock.
  void tell_reloading(MonoTime now);
  void tell_stopping() { tell("STOPPING=1"); }
  void tell_beat() { tell("WATCHDOG=1"); }
  /// What `systemctl status` shows: one line.
  void tell_status(std::string_view status);
  /// A start that goes on may take as long from now on.
  void extend_start(Duration limit);

 private:
  void tell(std::string_view lines);

  Log log_;
  std::string address_;
  int socket_ = -1;
  std::optional<Duration> watchdog_;
  bool failed_ = false;  // and said so
};

}  // namespace millrace::kernel
