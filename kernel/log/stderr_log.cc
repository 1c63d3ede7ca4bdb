#include "kernel/log/stderr_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace millrace::kernel {

namespace {

/// Some thousands of lines, for a reader that is away for a moment.
constexpr std::size_t waiting_bytes_max = 1 << 20;

std::string line_of(LineStyle style, LogLevel level, std::string_view subsystem,
                    std::string_view message, std::initializer_list<LogField> fields) {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const Timestamp now{std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
  return styled_line(style, {now, level, subsystem, message, fields});
}

}  // namespace

bool is_journal(int descriptor, const char* journal_stream) {
  struct stat file{};
  if (!journal_stream || ::fstat(descriptor, &file) != 0) return false;
  return std::to_string(file.st_dev) + ':' + std::to_string(file.st_ino) == journal_stream;
}

StderrLog::StderrLog(LogLevels levels, std::string_view format, bool journal)
    : style_{.json = format == "json", .journal = journal},
      writer_(STDERR_FILENO, waiting_bytes_max, [style = style_](std::uint64_t lines) {
        return line_of(style, LogLevel::warning, "log",
                       "lines were dropped here: stderr was not read fast enough",
                       {{"lines", lines}});
      }) {
  set_levels(std::move(levels));
}

void StderrLog::set_levels(LogLevels levels) {
  const std::lock_guard lock(mutex_);
  all_levels_.push_back(std::make_unique<const LogLevels>(std::move(levels)));
  levels_ = all_levels_.back().get();
}

bool StderrLog::wants(LogLevel level, std::string_view subsystem) const noexcept {
  const auto& levels = *levels_.load();
  auto name = subsystem;
  while (!name.empty() && !levels.of.empty()) {
    const auto found = levels.of.find(name);
    if (found != levels.of.end()) return level >= found->second;
    const auto dot = name.rfind('.');
    name = dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
  }
  return level >= levels.others;
}

void StderrLog::write(LogLevel level, std::string_view subsystem, std::string_view message,
                      std::initializer_list<LogField> fields) noexcept {
  try {
    writer_.push(line_of(style_, level, subsystem, message, fields));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory for a line, and
    // nobody left to tell.
  }
}

}  // namespace millrace::kernel
