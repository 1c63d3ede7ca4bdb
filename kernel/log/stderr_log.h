// The log of a process: lines to stderr, which the service manager keeps, or entries of its
// journal.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/observe.h>

#include "kernel/log/line_writer.h"
#include "kernel/log/log_line.h"

namespace millrace::kernel {

/// Levels of subsystems and of what is below them: "storage" counts for "storage.filelog" unless
/// that has its own.
struct LogLevels {
  LogLevel others = LogLevel::info;
  std::map<std::string, LogLevel, std::less<>> of;
};

/// Whether the journal reads what is written to `descriptor`: `journal_stream` is what systemd has
/// put into JOURNAL_STREAM, or nullptr. Whoever has redirected it since has another file there.
bool is_journal(int descriptor, const char* journal_stream);

/// The first kernel code that runs and the last to be destroyed, so it stands on its own: it reads
/// the clock itself. Nobody who logs waits for the reader of stderr: see LineWriter.  [any thread]
class StderrLog final : public LogSink {
 public:
  /// `format` is "text" or "json". `journal`: it reads stderr. Then events go to `socket`, where
  /// somebody listens, as entries with fields, and to stderr those that are refused there.
  StderrLog(LogLevels levels, std::string_view format, bool journal = false,
            const std::string& socket = {});

  bool wants(LogLevel level, std::string_view subsystem) const noexcept override;
  void write(LogLevel level, std::string_view subsystem, std::string_view message,
             std::initializer_list<LogField> fields) noexcept override;

  LogLevels levels() const { return *levels_.load(); }
  void set_levels(LogLevels levels);
  /// Whether every line has been handed to stderr. Fit for a signal handler.
  bool idle() const noexcept { return writer_.idle(); }

 private:
  StderrLog(LogLevels levels, LineStyle style, std::unique_ptr<JournalSocket> journal);
  /// What is pushed for an event.
  std::string made_of(LogLevel level, std::string_view subsystem, std::string_view message,
                      std::initializer_list<LogField> fields) const;

  const LineStyle style_;
  const bool has_entries_;  // besides lines
  std::atomic<const LogLevels*> levels_;
  // Whoever reads old levels may do so at any time: they stay. They change by a person's hand.
  std::mutex mutex_;
  std::vector<std::unique_ptr<const LogLevels>> all_levels_;  // guarded by mutex_
  LineWriter writer_;
};

}  // namespace millrace::kernel
