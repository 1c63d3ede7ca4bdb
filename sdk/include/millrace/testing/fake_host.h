// The kernel's side of the conversation with a plugin, for tests: what a plugin is given, what it
// registers, and a way to use a shared object without a broker.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/aggregate.h>
#include <millrace/coordination.h>
#include <millrace/environment.h>
#include <millrace/operator.h>
#include <millrace/plugin.h>
#include <millrace/storage.h>
#include <millrace/testing/kept_log.h>
#include <millrace/testing/option_values.h>
#include <millrace/transport.h>

namespace millrace::testing {

/// Reads as nothing: a test asks for a metric by its name and labels.  [any thread]
class KeptMetrics final : public Metrics {
 public:
  Counter& counter(std::string_view name, std::string_view help) override;
  Gauge& gauge(std::string_view name, std::string_view help) override;
  Counter& counter(std::string_view name, std::string_view help, MetricLabels labels) override;
  Gauge& gauge(std::string_view name, std::string_view help, MetricLabels labels) override;
  Histogram& histogram(std::string_view name, std::string_view help, MetricLabels labels) override;
  std::vector<MetricFamily> read() const override { return {}; }

 private:
  template <class T>
  using Kept = std::map<std::pair<std::string, MetricLabels>, T>;
  std::mutex mutex_;
  Kept<Counter> counters_;
  Kept<Gauge> gauges_;
  Kept<Histogram> histograms_;
};

using HostSettings = std::map<std::string, std::string, std::less<>>;

/// What a plugin gets. Options are those given: see LoadedPlugin for ones with defaults filled in.
class FakeHost final : public Host {
 public:
  explicit FakeHost(Environment& environment, OptionValues options = {},
                    HostSettings settings = {});

  std::string_view instance() const noexcept override { return "test"; }
  const Options& options() const noexcept override { return options_; }
  Environment& environment() noexcept override { return environment_; }
  const Log& log() const noexcept override { return log_; }
  KeptMetrics& metrics() noexcept override { return metrics_; }
  /// "" for a setting that was not given.
  std::string_view setting(std::string_view name) const noexcept override;

  KeptLog& kept_log() noexcept { return kept_log_; }

 private:
  Environment& environment_;
  Options options_;
  HostSettings settings_;
  KeptLog kept_log_;
  Log log_;
  KeptMetrics metrics_;
};

/// Keeps what a plugin registers.
class FakeRegistrar final : public Registrar {
 public:
  Result<> add(std::unique_ptr<Codec> codec) override;
  Result<> add(std::unique_ptr<Storage> added) override;
  Result<> add(std::unique_ptr<Coordination> added) override;
  Result<> add(std::unique_ptr<Transport> added) override;
  Result<> add(std::unique_ptr<AggregateFactory> added) override;
  Result<> add(std::unique_ptr<OperatorFactory> added) override;

  std::vector<std::unique_ptr<Codec>> codecs;
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Coordination> coordination;
  std::unique_ptr<Transport> transport;
  std::vector<std::unique_ptr<AggregateFactory>> aggregates;
  std::unique_ptr<OperatorFactory> operator_factory;
};

/// One started instance of a shared object: what a contract test runs against. What it registered
/// is destroyed before the plugin; the library stays mapped, as in the kernel.
class LoadedPlugin {
 public:
  LoadedPlugin(LoadedPlugin&&) noexcept = default;
  const MillraceDescriptor& descriptor() const noexcept { return *descriptor_; }
  FakeHost& host() noexcept { return *host_; }
  FakeRegistrar& registered() noexcept { return *registered_; }

 private:
  friend Result<LoadedPlugin> load_plugin(const std::string&, Environment&, OptionValues,
                                          HostSettings);
  LoadedPlugin() = default;

  struct Destroy {
    const MillraceDescriptor* descriptor;
    void operator()(Plugin* plugin) const noexcept { descriptor->destroy(plugin); }
  };
  const MillraceDescriptor* descriptor_ = nullptr;
  std::unique_ptr<FakeHost> host_;
  std::unique_ptr<Plugin, Destroy> plugin_{nullptr, Destroy{nullptr}};
  std::unique_ptr<FakeRegistrar> registered_;
};

/// Maps the file, takes its descriptor, creates and starts an instance. `options` are what is set:
/// the declared defaults are filled in. The checks of the handshake are the kernel's and are not
/// repeated here: the file must be built with this tree.
Result<LoadedPlugin> load_plugin(const std::string& path, Environment& environment,
                                 OptionValues options = {}, HostSettings settings = {});

}  // namespace millrace::testing
