// The log of a process: lines to stderr, which the service manager keeps.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <millrace/observe.h>

namespace millrace::kernel {

/// The first kernel code that runs and the last to be destroyed, so it stands on its own: it reads
/// the clock itself.  [any thread]
class StderrLog final : public LogSink {
 public:
  /// `levels` are for subsystems and what is below them: "storage" counts for "storage.filelog"
  /// unless that has its own. `format` is "text" or "json".
  StderrLog(LogLevel level, std::map<std::string, LogLevel, std::less<>> levels,
            std::string_view format);

  bool wants(LogLevel level, std::string_view subsystem) const noexcept override;
  /// One write per line, so that lines of several threads do not mix. A full or closed stderr loses
  /// the line, nothing else.
  void write(LogLevel level, std::string_view subsystem, std::string_view message,
             std::initializer_list<LogField> fields) noexcept override;

 private:
  LogLevel level_;
  std::map<std::string, LogLevel, std::less<>> levels_;
  bool json_;
};

}  // namespace millrace::kernel
