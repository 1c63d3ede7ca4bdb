#include "kernel/log/metrics_registry.h"

#include <utility>

#include <millrace/result.h>

namespace millrace::kernel {

namespace {

MetricSample sample_of(const Counter& counter) {
  return {.value = static_cast<double>(counter.value())};
}
MetricSample sample_of(const Gauge& gauge) { return {.value = static_cast<double>(gauge.value())}; }
MetricSample sample_of(const Histogram& histogram) {
  return {.value = std::chrono::duration<double>(histogram.sum()).count(),
          .counts = histogram.counts()};
}

template <class T>
std::vector<MetricSample> samples_of(const std::map<MetricLabels, T>& series) {
  std::vector<MetricSample> samples;
  samples.reserve(series.size());
  for (const auto& [labels, metric] : series) {
    samples.push_back(sample_of(metric));
    samples.back().labels = labels;
  }
  return samples;
}

}  // namespace

template <class T>
T& MetricsRegistry::find_or_add(std::string_view name, std::string_view help, MetricLabels labels) {
  const std::lock_guard lock(mutex_);
  auto found = named_.find(name);
  if (found == named_.end()) {
    found = named_.emplace(name, Named{std::string(help), Series<T>()}).first;
  }
  MR_ASSERT(std::holds_alternative<Series<T>>(found->second.series));
  return std::get<Series<T>>(found->second.series)[std::move(labels)];
}

Counter& MetricsRegistry::counter(std::string_view name, std::string_view help) {
  return find_or_add<Counter>(name, help, {});
}
Gauge& MetricsRegistry::gauge(std::string_view name, std::string_view help) {
  return find_or_add<Gauge>(name, help, {});
}
Counter& MetricsRegistry::counter(std::string_view name, std::string_view help,
                                  MetricLabels labels) {
  return find_or_add<Counter>(name, help, std::move(labels));
}
Gauge& MetricsRegistry::gauge(std::string_view name, std::string_view help, MetricLabels labels) {
  return find_or_add<Gauge>(name, help, std::move(labels));
}
Histogram& MetricsRegistry::histogram(std::string_view name, std::string_view help,
                                      MetricLabels labels) {
  return find_or_add<Histogram>(name, help, std::move(labels));
}

std::vector<MetricFamily> MetricsRegistry::read() const {
  const std::lock_guard lock(mutex_);
  std::vector<MetricFamily> families;
  families.reserve(named_.size());
  for (const auto& [name, named] : named_) {
    const auto type = static_cast<MetricType>(named.series.index());
    auto samples = std::visit([](const auto& series) { return samples_of(series); }, named.series);
    families.push_back({name, named.help, type, std::move(samples)});
  }
  return families;
}

}  // namespace millrace::kernel
