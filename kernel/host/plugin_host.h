// The running plugins of a broker: creates and starts the instances of a plan in stages, keeps what
// they register, stops everything in reverse.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/operations.h>
#include <millrace/plugin.h>

#include "kernel/host/instance_host.h"
#include "kernel/host/plan.h"

namespace millrace::kernel {

struct NamedTransport {
  std::string name;
  Transport* transport;
};

struct NamedAggregate {
  PluginFact plugin;
  AggregateFactory* factory;
};
struct NamedExtension {
  std::string plugin;
  void* extension;
};

/// One broker's plugins. Stages, because the broker stands between them: compression, coordination
/// and storage start before it, operators and transports after.  [start-up; stop on the same
/// thread]
///
///   PluginHost host(std::move(plan.plugins), settings, {environment, log, metrics});
///   MR_CHECK(host.start("compression"));
///   MR_CHECK(host.start("coordination"));
///   MR_CHECK(host.start("storage"));      // now codecs(), coordination(), storage()
///   ...                                   // the broker
///   MR_CHECK(host.start("operators"));    // now aggregates(), extensions()
///   MR_CHECK(host.start("transport"));    // now transports()
class PluginHost {
 public:
  /// `settings`: what Host::setting() answers ("broker.id", "broker.data").
  PluginHost(std::vector<PlannedPlugin> plugins, HostSettings settings, HostServices services);
  /// Stops what runs.
  ~PluginHost();
  PluginHost(const PluginHost&) = delete;
  PluginHost& operator=(const PluginHost&) = delete;

  /// Starts every instance of a kind. On an error this instance is destroyed again and those before
  /// it run on until stop(); the error carries the plugin's id and the reason.
  Result<> start(std::string_view kind);
  /// Starts what can be started of a kind, and answers what is wrong with the others.
  std::vector<Error> try_start(std::string_view kind);
  /// While the broker runs: starts one more, which runs like the others from then on. After an
  /// error nothing is left of it.
  Result<> add(const PlannedPlugin& planned);
  /// It runs no more: the caller has stopped what it registered, which stays until its kind stops,
  /// for others may still hold on to it.
  void retire(std::string_view kind, std::string_view instance);
  /// Destroys what the instances of a kind have registered, then them, last started first. The
  /// caller has stopped transports and closed storage before. Idempotent.
  void stop(std::string_view kind) noexcept;
  /// Every kind, in reverse.
  void stop() noexcept;

  /// Codecs of the compression plugins that run.
  Codecs codecs() const noexcept;
  /// Once its kind is started: a plugin that registers none has failed to start.
  Storage& storage() const noexcept;
  Coordination& coordination() const noexcept;
  std::vector<NamedTransport> transports() const;
  std::vector<NamedAggregate> aggregates() const;
  /// What Plugin::extension(id) answers, of those that have it, in the order of start.
  std::vector<NamedExtension> extensions(std::string_view id) const;

  /// What the instance's Plugin::extension(id) answers; nullptr when it does not run.
  void* extension_of(std::string_view kind, std::string_view instance, std::string_view id) const;

  /// What the instances of a kind are, or were, started from.
  std::vector<PlannedPlugin> planned(std::string_view kind) const;
  const std::vector<PlannedPlugin>& planned() const noexcept { return plugins_; }

  /// What instances are told by Host::setting(), for those that others start.
  const std::shared_ptr<const HostSettings>& settings() const noexcept { return settings_; }

  /// What runs, in the order of start.
  std::vector<PluginFact> facts() const;

 private:
  class Instance;

  Result<> start(const PlannedPlugin& planned);

  std::vector<PlannedPlugin> plugins_;
  std::shared_ptr<const HostSettings> settings_;
  HostServices services_;
  std::vector<std::unique_ptr<Instance>> running_;
  std::vector<std::unique_ptr<Instance>> retired_;
};

}  // namespace millrace::kernel
