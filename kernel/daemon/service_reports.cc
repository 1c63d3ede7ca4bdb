#include "kernel/daemon/service_reports.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

// While it starts or stops somebody may look on; while it serves little changes.
constexpr Duration pause_on_the_way = std::chrono::seconds(1);
constexpr Duration pause_serving_max = std::chrono::seconds(10);
constexpr int reports_per_watchdog = 4;
// What one step of a start takes at most, such as the recovery of one log.
constexpr Duration start_step_max = std::chrono::minutes(5);

}  // namespace

ServiceReports::ServiceReports(ServiceManager& manager, Environment& environment, Log log)
    : manager_(manager),
      environment_(environment),
      log_(std::move(log)),
      heartbeat_(environment),
      beaten_(environment.clock().now()) {}

std::optional<Duration> ServiceReports::pause() const {
  if (!manager_.listens()) return std::nullopt;
  const auto most = serving_ ? pause_serving_max : pause_on_the_way;
  return manager_.watchdog() ? std::min(most, *manager_.watchdog() / reports_per_watchdog) : most;
}

void ServiceReports::report(std::string doing) {
  if (!manager_.listens()) return;
  if (doing != doing_) {
    if (starting_) manager_.extend_start(start_step_max);
    doing_ = std::move(doing);
    tell_status();
  }
  if (manager_.watchdog()) beat();
}

void ServiceReports::beat() {
  const auto now = environment_.clock().now();
  if (heartbeat_.beat()) {
    if (std::exchange(warned_, false)) log_.info("all threads turn again");
    beaten_ = now;
    manager_.tell_beat();
    return;
  }
  if (warned_ || now - beaten_ < *manager_.watchdog() / 2) return;
  warned_ = true;
  log_.error(
      "a thread does not turn; unless it does soon, the service manager's watchdog ends "
      "the broker",
      {{"threads", joined(heartbeat_.missing())},
       {"seconds", (now - beaten_) / std::chrono::seconds(1)},
       {"watchdog_seconds", *manager_.watchdog() / std::chrono::seconds(1)}});
}

void ServiceReports::ready(std::string doing) {
  starting_ = false;
  serving_ = true;
  report(std::move(doing));
  manager_.tell_ready();
}

void ServiceReports::reloading() { manager_.tell_reloading(environment_.clock().now()); }

void ServiceReports::reloaded(std::string remark) {
  const bool other = remark != remark_;
  remark_ = std::move(remark);
  if (other && manager_.listens()) tell_status();
  manager_.tell_ready();
}

void ServiceReports::tell_status() {
  manager_.tell_status(remark_.empty() ? doing_ : concat(doing_, "; ", remark_));
}

void ServiceReports::stopping(std::string doing) {
  starting_ = false;
  serving_ = false;
  remark_.clear();
  manager_.tell_stopping();
  report(std::move(doing));
}

void ServiceReports::failed(std::string_view reason) {
  manager_.tell_status(concat("could not start: ", reason));
}

}  // namespace millrace::kernel
