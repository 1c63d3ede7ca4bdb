// What is told to people and to monitoring: log lines with fields, counters, gauges, histograms.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

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

/// How long something takes, in buckets that double from 0.1 ms to 13 s.  [any thread]
class Histogram {
 public:
  using Duration = std::chrono::nanoseconds;
  /// Of them the last has no bound.
  static constexpr std::size_t buckets = 19;

  /// What bucket `at` holds took at most this long, and longer than what the one before it holds.
  static constexpr Duration bound(std::size_t at) noexcept {
    return at + 1 < buckets ? first_bound * (std::int64_t{1} << at) : Duration::max();
  }
  void observe(Duration took) noexcept {
    counts_[bucket_of(took)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(took.count(), std::memory_order_relaxed);
  }
  std::array<std::uint64_t, buckets> counts() const noexcept {
    std::array<std::uint64_t, buckets> now{};
    for (std::size_t at = 0; at < buckets; ++at) {
      now[at] = counts_[at].load(std::memory_order_relaxed);
    }
    return now;
  }
  Duration sum() const noexcept { return Duration(sum_.load(std::memory_order_relaxed)); }

 private:
  static constexpr Duration first_bound = std::chrono::microseconds(100);

  static constexpr std::size_t bucket_of(Duration took) noexcept {
    if (took <= first_bound) return 0;
    const auto times = static_cast<std::uint64_t>((took - Duration(1)) / first_bound);
    return std::min<std::size_t>(std::bit_width(times), buckets - 1);
  }

  std::array<std::atomic<std::uint64_t>, buckets> counts_{};
  std::atomic<std::int64_t> sum_{0};
};

/// `api="Produce"`. Its values are few and known: what a client can make up is no label.
struct MetricLabel {
  std::string name;
  std::string value;
  friend auto operator<=>(const MetricLabel&, const MetricLabel&) = default;
};
using MetricLabels = std::vector<MetricLabel>;

enum class MetricType : std::uint8_t { counter, gauge, histogram };

/// One series as it is now.
struct MetricSample {
  MetricLabels labels;
  double value = 0;                                        ///< of a histogram: the sum, in seconds
  std::array<std::uint64_t, Histogram::buckets> counts{};  ///< of a histogram alone
};

/// All series of one name.
struct MetricFamily {
  std::string name;
  std::string help;
  MetricType type = MetricType::counter;
  std::vector<MetricSample> samples;
};

/// Registers metrics by name ("millrace_connections") and labels; the same ones give the same
/// object, which lives as long as the process. A name has one type and one help. Look up once and
/// keep the reference: a look-up takes a lock.  [any thread]
class Metrics {
 public:
  virtual ~Metrics() = default;
  virtual Counter& counter(std::string_view name, std::string_view help) = 0;
  virtual Gauge& gauge(std::string_view name, std::string_view help) = 0;
  virtual Counter& counter(std::string_view name, std::string_view help, MetricLabels labels) = 0;
  virtual Gauge& gauge(std::string_view name, std::string_view help, MetricLabels labels) = 0;
  virtual Histogram& histogram(std::string_view name, std::string_view help,
                               MetricLabels labels) = 0;
  /// Everything that is registered, sorted by name and labels: for who shows it.
  virtual std::vector<MetricFamily> read() const = 0;
};

}  // namespace millrace
