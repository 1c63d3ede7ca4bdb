// What is told to people and to monitoring: log lines with fields, counters, gauges.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace millrace {

enum class LogLevel : std::uint8_t { trace, debug, info, warning, error };
std::string_view name_of(LogLevel level) noexcept;

/// One field of a log line: `partition=orders-3`.
struct LogField {
  std::string_view name;
  std::string value;

  LogField(std::string_view field, std::string_view text) : name(field), value(text) {}
  LogField(std::string_view field, const char* text) : name(field), value(text) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  LogField(std::string_view field, T number) : name(field), value(std::to_string(number)) {}
};

/// Where lines go. Implemented by the kernel; a test keeps them.  [any thread]
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual bool wants(LogLevel level, std::string_view subsystem) const noexcept = 0;
  virtual void write(LogLevel level, std::string_view subsystem, std::string_view message,
                     std::initializer_list<LogField> fields) noexcept = 0;
};

/// A subsystem's log: `log.info("recovered", {{"partition", name}, {"cut_bytes", n}})`. The message
/// is a sentence for an operator at 3 a.m.; what varies is in the fields. A value: copy it freely.
class Log {
 public:
  Log(LogSink& sink, std::string subsystem) : sink_(&sink), subsystem_(std::move(subsystem)) {}

  void debug(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::debug, message, fields);
  }
  void info(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::info, message, fields);
  }
  void warning(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::warning, message, fields);
  }
  void error(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::error, message, fields);
  }
  bool wants(LogLevel level) const noexcept { return sink_->wants(level, subsystem_); }
  void write(LogLevel level, std::string_view message,
             std::initializer_list<LogField> fields) const {
    if (wants(level)) sink_->write(level, subsystem_, message, fields);
  }
  LogSink& sink() const noexcept { return *sink_; }

 private:
  LogSink* sink_;
  std::string subsystem_;
};

/// [any thread]
class Counter {
 public:
  void add(std::uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// [any thread]
class Gauge {
 public:
  void set(std::int64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }
  void add(std::int64_t n) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  std::int64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

/// Registers metrics by name ("millrace_connections"); the same name gives the same object, which
/// lives as long as the process.  [any thread]
class Metrics {
 public:
  virtual ~Metrics() = default;
  virtual Counter& counter(std::string_view name, std::string_view help) = 0;
  virtual Gauge& gauge(std::string_view name, std::string_view help) = 0;
};

}  // namespace millrace
