// A broker as a whole: plugins, the broker's services, transports, in the order that each needs.
// The daemon runs one on the real environment, a simulation several on simulated ones.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/admin.h>
#include <millrace/aggregates.h>
#include <millrace/coordination.h>
#include <millrace/environment.h>
#include <millrace/observe.h>
#include <millrace/peer_records.h>
#include <millrace/transport.h>

#include "kernel/daemon/operations.h"
#include "kernel/daemon/reload.h"
#include "kernel/host/plan.h"
#include "kernel/host/plugin_host.h"

namespace millrace::kernel {

class AggregateFiles;
class AggregateRouter;
class KernelBroker;
class ReplacementService;
struct PluginChanges;
class StderrLog;
class StreamService;

/// As a client would ask for them.
std::vector<NewTopic> declared_topics(const std::vector<TopicSettings>& settings);

/// [control thread]
class Engine {
 public:
  /// How far a start has come; says whose fault a failure is.
  enum class Step { plugins, data, listen, running };

  /// `services` and `log` outlive the engine. `log`: whose levels may be changed while it runs.
  Engine(Plan plan, HostServices services, StderrLog* log = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Before start(): in place of the one that the plan names, which is not used then. Outlives the
  /// engine; several brokers of a simulation share a service through theirs.
  void use(Coordination& coordination) { coordination_ = &coordination; }

  /// Starts everything. On an error what was started is stopped again, in reverse, before this
  /// completes; step() tells where it failed.
  Task<> start();
  /// Transports answer what is in flight for at most `grace`, partitions are closed, plugins stop.
  Task<> stop(Duration grace);

  /// Instead of a start: what one would find wrong in the configuration beyond what make_plan()
  /// could. Every plugin is started and every operator made, then all stop again; no data is
  /// touched, nobody connected to, nothing listened on.
  Task<std::vector<Error>> check();

  /// Takes over what a broker that runs can of a configuration that was read again: streams,
  /// aggregates' plugins, codecs and transports that are new, transports that are gone, topics.
  /// An error: something of it is wrong, and nothing was changed. What was begun meanwhile has
  /// ended again.
  Task<ReloadOutcome> reload(Plan wanted);

  Step step() const noexcept { return step_; }
  /// What it does at this moment, for people: "recovering 412 of 900 logs".  [any thread]
  std::string doing() const;
  /// Where clients find us, once running.
  const std::vector<Endpoint>& endpoints() const noexcept { return endpoints_; }
  KernelBroker& broker() noexcept { return *broker_; }

 private:
  // What doing() tells. From `opening` on there is a broker.
  enum class Doing {
    starting,
    opening,
    loading,
    announcing,
    serving,
    handing_over,
    ending,
    closing
  };

  Task<> start_steps();
  Task<> start_operators();
  Result<> connect(ServiceProvider& provider, std::string_view plugin);
  void make_streams();
  void make_replacements();
  // engine_reload.cc
  bool needs_to_run(const PlannedPlugin& plugin) const;
  Task<> start_plugins(const std::vector<PlannedPlugin>& plugins);
  Task<> start_each(const std::vector<PlannedPlugin>& plugins);
  Task<> use_plugins(const PluginChanges& changes, ReloadOutcome& outcome);
  Task<> end_transport(std::string instance, Duration grace);
  Task<> tell_addresses(ReloadOutcome& outcome);
  Task<> end_transports(const std::vector<std::string>& instances, ReloadOutcome& outcome);
  Task<> change_streams(std::vector<PlannedStream> wanted, ReloadOutcome& outcome);
  Task<> change_defaults(const std::map<std::string, std::string>& wanted, ReloadOutcome& outcome);
  Task<> make_topics(std::vector<TopicSettings> wanted, ReloadOutcome& outcome);
  Task<> replace_aggregates(const std::vector<PlannedPlugin>& wanted, ReloadOutcome& outcome);
  Task<bool> replace_aggregates_of(const PlannedPlugin& plugin, ReloadOutcome& outcome);
  Task<> listen();
  Task<> listen_on(NamedTransport named);
  Result<std::optional<NamedExtension>> find_peer_link() const;
  RecordLink* record_link_of(std::string_view instance) const;
  Result<> connect_peers();
  void log_plugins(std::string_view kind) const;
  void tell_plugins();

  Plan plan_;
  HostServices services_;
  Log log_;
  BrokerOperations operations_;
  Step step_ = Step::plugins;
  std::atomic<Doing> doing_ = Doing::starting;
  std::unique_ptr<PluginHost> plugins_;
  Coordination* coordination_ = nullptr;
  std::unique_ptr<KernelBroker> broker_;
  std::unique_ptr<AggregateFiles> aggregate_files_;
  std::unique_ptr<AggregateRouter> aggregates_;
  std::unique_ptr<StreamService> streams_;
  std::unique_ptr<ReplacementService> replacements_;
  bool broker_open_ = false;
  // Plugins whose aggregates a reload has replaced, by instance: as what they run since.
  std::map<std::string, const MillraceDescriptor*> replaced_;
  std::vector<Transport*> listening_;
  std::vector<Endpoint> endpoints_;
  bool endpoints_told_ = true;  // as they are now
  // What other brokers are reached by: the objects, and the transport that they find this one by.
  std::vector<const void*> links_;
  std::string peer_listener_;
};

}  // namespace millrace::kernel
