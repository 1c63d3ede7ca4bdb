// All counters and gauges of a process, by name.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <millrace/observe.h>

namespace millrace::kernel {

/// One metric as it is now.
struct MetricSample {
  enum class Type { counter, gauge };
  std::string name;
  std::string help;
  Type type = Type::counter;
  std::int64_t value = 0;
};

/// [any thread]
class MetricsRegistry final : public Metrics {
 public:
  Counter& counter(std::string_view name, std::string_view help) override;
  Gauge& gauge(std::string_view name, std::string_view help) override;

  /// Sorted by name.
  std::vector<MetricSample> samples() const;

 private:
  // Nodes of a map stay where they are.
  struct NamedCounter {
    std::string help;
    Counter counter;
  };
  struct NamedGauge {
    std::string help;
    Gauge gauge;
  };
  mutable std::mutex mutex_;
  std::map<std::string, NamedCounter, std::less<>> counters_;
  std::map<std::string, NamedGauge, std::less<>> gauges_;
};

}  // namespace millrace::kernel
