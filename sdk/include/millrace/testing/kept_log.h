// A log that a test reads.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/observe.h>

namespace millrace::testing {

/// Keeps the lines, each as "warning storage.filelog: cut a torn tail bytes=12".  [any thread]
class KeptLog final : public LogSink {
 public:
  bool wants(LogLevel, std::string_view) const noexcept override { return true; }
  void write(LogLevel level, std::string_view subsystem, std::string_view message,
             std::initializer_list<LogField> fields) noexcept override;

  std::vector<std::string> lines() const;
  /// Whether a line contains `text`.
  bool contains(std::string_view text) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace millrace::testing
