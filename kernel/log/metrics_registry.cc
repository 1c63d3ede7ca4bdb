#include "kernel/log/metrics_registry.h"

#include <algorithm>

namespace millrace::kernel {

Counter& MetricsRegistry::counter(std::string_view name, std::string_view help) {
  const std::lock_guard lock(mutex_);
  auto& named = counters_[std::string(name)];
  if (named.help.empty()) named.help = help;
  return named.counter;
}

Gauge& MetricsRegistry::gauge(std::string_view name, std::string_view help) {
  const std::lock_guard lock(mutex_);
  auto& named = gauges_[std::string(name)];
  if (named.help.empty()) named.help = help;
  return named.gauge;
}

std::vector<MetricSample> MetricsRegistry::samples() const {
  const std::lock_guard lock(mutex_);
  std::vector<MetricSample> samples;
  for (const auto& [name, named] : counters_) {
    samples.push_back({name, named.help, MetricSample::Type::counter,
                       static_cast<std::int64_t>(named.counter.value())});
  }
  for (const auto& [name, named] : gauges_) {
    samples.push_back({name, named.help, MetricSample::Type::gauge, named.gauge.value()});
  }
  std::ranges::sort(samples, {}, &MetricSample::name);
  return samples;
}

}  // namespace millrace::kernel
