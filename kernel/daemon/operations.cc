#include "kernel/daemon/operations.h"

#include <algorithm>

#include "kernel/log/stderr_log.h"

namespace millrace::kernel {

namespace {

bool is_subsystem(std::string_view name) {
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

}  // namespace

std::vector<LogLevelFact> BrokerOperations::log_levels() const {
  if (log_ == nullptr) return {};
  const auto levels = log_->levels();
  std::vector<LogLevelFact> facts;
  facts.push_back({"", levels.others});
  for (const auto& [subsystem, level] : levels.of) facts.push_back({subsystem, level});
  return facts;
}

Result<> BrokerOperations::set_log_level(std::string_view subsystem,
                                         std::optional<LogLevel> level) {
  if (log_ == nullptr) return Error{Errc::unsupported, "this broker's log has no levels"};
  if (!is_subsystem(subsystem)) {
    return Error{Errc::invalid_argument, "expected a subsystem such as storage.filelog, found \"" +
                                             std::string(subsystem) + "\""};
  }
  if (subsystem.empty() && !level) {
    return Error{Errc::invalid_argument, "the level for all that has none cannot be taken away"};
  }
  const std::lock_guard lock(levels_mutex_);
  auto levels = log_->levels();
  if (subsystem.empty()) {
    levels.others = *level;
  } else if (level) {
    levels.of.insert_or_assign(std::string(subsystem), *level);
  } else {
    levels.of.erase(std::string(subsystem));
  }
  log_->set_levels(std::move(levels));
  return {};
}

}  // namespace millrace::kernel
