// What one instance of a plugin is given, and how its code is called: of a broker's plugins and of
// the steps of streams alike.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <millrace/plugin.h>

#include "kernel/host/trial.h"

namespace millrace::kernel {

/// What plugins are given.  Outlives them.
struct HostServices {
  Environment& environment;
  LogSink& log;
  Metrics& metrics;
  /// What is loaded while the broker runs is tried so first; none: it is not.
  PluginTrial trial = {};
};

/// What Host::setting() answers, by name. Shared: every instance keeps it.
using HostSettings = std::map<std::string, std::string, std::less<>>;

class InstanceHost final : public Host {
 public:
  InstanceHost(std::string instance, Options options, std::shared_ptr<const HostSettings> settings,
               HostServices services, std::string subsystem)
      : instance_(std::move(instance)),
        options_(std::move(options)),
        settings_(std::move(settings)),
        services_(services),
        log_(services.log, std::move(subsystem)) {}

  std::string_view instance() const noexcept override { return instance_; }
  const Options& options() const noexcept override { return options_; }
  Environment& environment() noexcept override { return services_.environment; }
  const Log& log() const noexcept override { return log_; }
  Metrics& metrics() noexcept override { return services_.metrics; }
  std::string_view setting(std::string_view name) const noexcept override {
    const auto found = settings_->find(name);
    return found == settings_->end() ? std::string_view{} : found->second;
  }

 private:
  std::string instance_;
  Options options_;
  std::shared_ptr<const HostSettings> settings_;
  HostServices services_;
  Log log_;
};

/// The Result of `call`, which runs code of a plugin: what that throws becomes an error.
template <class F>
auto without_exceptions(F call) noexcept -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& thrown) {
    return Error{Errc::internal, std::string("it threw: ") + thrown.what()};
  } catch (...) {
    return Error{Errc::internal, "it threw something that is not a std::exception"};
  }
}

}  // namespace millrace::kernel
