#include "kernel/log/stderr_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace millrace::kernel {

namespace {

/// Some thousands of lines, for a reader that is away for a moment.
constexpr std::size_t waiting_bytes_max = 1 << 20;

Timestamp now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
}

/// nullptr: nobody listens there.
std::unique_ptr<JournalSocket> connected(bool journal, const std::string& path) {
  if (!journal || path.empty()) return nullptr;
  auto socket = std::make_unique<JournalSocket>(path);
  if (!socket->is_connected()) return nullptr;
  return socket;
}

}  // namespace

bool is_journal(int descriptor, const char* journal_stream) {
  struct stat file{};
  if (!journal_stream || ::fstat(descriptor, &file) != 0) return false;
  return std::to_string(file.st_dev) + ':' + std::to_string(file.st_ino) == journal_stream;
}

StderrLog::StderrLog(LogLevels levels, std::string_view format, bool journal,
                     const std::string& socket)
    : StderrLog(std::move(levels), LineStyle{.json = format == "json", .journal = journal},
                connected(journal, socket)) {}

StderrLog::StderrLog(LogLevels levels, LineStyle style, std::unique_ptr<JournalSocket> journal)
    : style_(style),
      has_entries_(journal != nullptr),
      writer_(
          STDERR_FILENO, waiting_bytes_max,
          [this](std::uint64_t lines) {
            return made_of(LogLevel::warning, "log",
                           "lines were dropped here: the log was not read fast enough",
                           {{"lines", lines}});
          },
          std::move(journal)) {
  set_levels(std::move(levels));
}

std::string StderrLog::made_of(LogLevel level, std::string_view subsystem, std::string_view message,
                               std::initializer_list<LogField> fields) const {
  const LogEvent event{now(), level, subsystem, message, fields};
  auto line = styled_line(style_, event);
  if (!has_entries_) return line;
  return with_entry(journal_entry(event, journal_message(style_.json, event)), line);
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
    writer_.push(made_of(level, subsystem, message, fields));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory for a line, and
    // nobody left to tell.
  }
}

}  // namespace millrace::kernel
