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
  /// `remark`: what stays to be said of it behind what the broker does, until the next reload.
  void reloaded(std::string remark);
  void stopping(std::string doing);
  void failed(std::string_view reason);

 private:
  void beat();
  void tell_status();

  ServiceManager& manager_;
  Environment& environment_;
  Log log_;
  Heartbeat heartbeat_;
  bool starting_ = true;
  bool serving_ = false;
  std::string doing_;
  std::string remark_;
  MonoTime beaten_;  // when all loops last had turned
  bool warned_ = false;
};

}  // namespace millrace::kernel
