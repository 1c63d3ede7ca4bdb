#include "kernel/log/stderr_log.h"

#include <unistd.h>

#include <chrono>

#include "kernel/log/log_line.h"

namespace millrace::kernel {

StderrLog::StderrLog(LogLevel level, std::map<std::string, LogLevel, std::less<>> levels,
                     std::string_view format)
    : level_(level), levels_(std::move(levels)), json_(format == "json") {}

bool StderrLog::wants(LogLevel level, std::string_view subsystem) const noexcept {
  auto name = subsystem;
  while (!name.empty() && !levels_.empty()) {
    const auto found = levels_.find(name);
    if (found != levels_.end()) return level >= found->second;
    const auto dot = name.rfind('.');
    name = dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
  }
  return level >= level_;
}

void StderrLog::write(LogLevel level, std::string_view subsystem, std::string_view message,
                      std::initializer_list<LogField> fields) noexcept {
  try {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    const Timestamp now{std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
    const LogEvent event{now, level, subsystem, message, fields};
    const auto line = json_ ? json_line(event) : text_line(event);
    static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory for a line, and
    // nobody left to tell.
  }
}

}  // namespace millrace::kernel
