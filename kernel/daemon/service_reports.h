// What the service manager is told, and when, from the start of a broker to its end.
#pragma once

#include <optional>
#include <string>

#include <millrace/environment.h>
#include <millrace/observe.h>

#include "kernel/daemon/heartbeat.h"
#include "kernel/daemon/service_manager.h"

namespace millrace::kernel {

/// [main thread]
class ServiceReports {
 public:
  /// Both outlive this.
  ServiceReports(ServiceManager& manager, Environment& environment, Log log);

  /// In how long report() is due; none: nobody wants to hear.
  std::optional<Duration> pause() const;
  /// `doing`: what the broker does at this moment. A start whose text changes gets on with its
  /// work, and gets more time for it. The watchdog hears a beat where all loops turn; which one
  /// does not is logged before the watchdog acts.
  void report(std::string doing);

  void ready(std::string doing);
  void reloading();
  void reloaded() { manager_.tell_ready(); }
  void stopping(std::string doing);
  void failed(std::string_view reason);

 private:
  void beat();

  ServiceManager& manager_;
  Environment& environment_;
  Log log_;
  Heartbeat heartbeat_;
  bool starting_ = true;
  bool serving_ = false;
  std::string doing_;
  MonoTime beaten_;  // when all loops last had turned
  bool warned_ = false;
};

}  // namespace millrace::kernel
