#include "kernel/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace millrace::kernel {

namespace {

// A service manager that reads nothing for a moment, as while it reloads its units, is waited for
// so long.
constexpr timeval send_max{.tv_sec = 1, .tv_usec = 0};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value <= 0) return std::nullopt;
  return value;
}

std::optional<Duration> watchdog_of(const ServiceManager::Variables& variables, pid_t self) {
  // Of the process that the variable was meant for, not of those that it has started.
  const auto whose = number(variables.watchdog_pid);
  if (whose && *whose != self) return std::nullopt;
  const auto usec = number(variables.watchdog_usec);
  if (!usec) return std::nullopt;
  return std::chrono::microseconds(*usec);
}

std::int64_t microseconds(Duration duration) { return duration / std::chrono::microseconds(1); }

}  // namespace

ServiceManager::Variables ServiceManager::variables() {
  return {variable("NOTIFY_SOCKET"), variable("WATCHDOG_USEC"), variable("WATCHDOG_PID")};
}

ServiceManager::ServiceManager(const Variables& variables, pid_t self, Log log)
    : log_(std::move(log)), address_(variables.notify_socket) {
  if (address_.empty()) return;
  if (address_.size() >= sizeof(sockaddr_un::sun_path)) {
    log_.warning("NOTIFY_SOCKET is too long for a socket; the service manager is not told",
                 {{"address", address_}});
    return;
  }
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) {
    log_.warning("the service manager cannot be told",
                 {{"reason", std::generic_category().message(errno)}});
    return;
  }
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &send_max, sizeof send_max);
  watchdog_ = watchdog_of(variables, self);
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) ::close(socket_);
}

void ServiceManager::tell_reloading(MonoTime now) {
  tell("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(microseconds(now.time_since_epoch())));
}

void ServiceManager::tell_status(std::string_view status) {
  std::string line(status.substr(0, status.find('\n')));
  tell("STATUS=" + line);
}

void ServiceManager::extend_start(Duration limit) {
  tell("EXTEND_TIMEOUT_USEC=" + std::to_string(microseconds(limit)));
}

void ServiceManager::tell(std::string_view lines) {
  if (socket_ < 0) return;
  sockaddr_un to{.sun_family = AF_UNIX, .sun_path = {}};
  std::memcpy(to.sun_path, address_.data(), address_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  const auto sent = ::sendto(socket_, lines.data(), lines.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&to), length);
  const bool failed = sent < 0;
  if (failed && !failed_) {
    log_.warning("the service manager could not be told",
                 {{"what", lines},
                  {"address", address_},
                  {"reason", std::generic_category().message(errno)}});
  }
  failed_ = failed;
}

}  // namespace millrace::kernel
