// All metrics of a process, by name and labels.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <millrace/observe.h>

namespace millrace::kernel {

/// [any thread]
class MetricsRegistry final : public Metrics {
 public:
  Counter& counter(std::string_view name, std::string_view help) override;
  Gauge& gauge(std::string_view name, std::string_view help) override;
  Counter& counter(std::string_view name, std::string_view help, MetricLabels labels) override;
  Gauge& gauge(std::string_view name, std::string_view help, MetricLabels labels) override;
  Histogram& histogram(std::string_view name, std::string_view help, MetricLabels labels) override;
  std::vector<MetricFamily> read() const override;

 private:
  // Nodes of a map stay where they are.
  template <class T>
  using Series = std::map<MetricLabels, T>;
  struct Named {
    std::string help;
    std::variant<Series<Counter>, Series<Gauge>, Series<Histogram>> series;
  };
  template <class T>
  T& find_or_add(std::string_view name, std::string_view help, MetricLabels labels);

  mutable std::mutex mutex_;
  std::map<std::string, Named, std::less<>> named_;
};

}  // namespace millrace::kernel
