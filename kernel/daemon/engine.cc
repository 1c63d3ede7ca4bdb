#include "kernel/daemon/engine.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <ranges>

#include <millrace/peers.h>

#include "kernel/broker/broker.h"
#include "kernel/broker/config_sources.h"
#include "kernel/config/text.h"
#include "kernel/streams/aggregate_files.h"
#include "kernel/streams/aggregate_router.h"
#include "kernel/streams/operator_file.h"
#include "kernel/streams/replacements.h"
#include "kernel/streams/stream_service.h"
#include "kernel/streams/stream_trial.h"

namespace millrace::kernel {

std::vector<NewTopic> declared_topics(const std::vector<TopicSettings>& settings) {
  std::vector<NewTopic> topics;
  for (const auto& declared : settings) {
    auto& topic = topics.emplace_back();
    topic.name = declared.name;
    topic.partitions = declared.partitions;
    topic.replication_factor = declared.replication_factor;
    for (const auto& [name, value] : declared.configs) topic.configs.emplace_back(name, value);
  }
  return topics;
}

namespace {

// Of the time that a stop takes; whoever could not hand over in it lets others find out.
constexpr Duration hand_over_max = std::chrono::milliseconds(1500);

// What Host::setting() answers: settings of a broker as they are written, or by default.
HostSettings host_settings(const Plan& plan) {
  const BrokerConfig config{.id = plan.broker.id,
                            .rack = plan.broker.rack,
                            .data = plan.broker.data,
                            .defaults = plan.defaults};
  HostSettings settings;
  for (auto& entry : ConfigSources(config, ClusterState()).describe_broker()) {
    if (entry.value) settings.emplace(std::move(entry.name), *std::move(entry.value));
  }
  settings.insert_or_assign("broker.id", std::to_string(plan.broker.id));
  settings.insert_or_assign("broker.data", plan.broker.data);
  return settings;
}

// What whoever starts a broker by hand meets first: the default folder is for a service of its own
// user.
Error with_remedy(Error error, const std::string& data) {
  for (const int denied : {EACCES, EPERM, EROFS, ENOENT}) {
    if (!error.detail.ends_with(std::strerror(denied))) continue;
    error.detail += concat("; broker.data is ", data,
                           ": let this user write there, or name a folder of its own, as in "
                           "millraced --set broker.data=$HOME/millrace-data");
    // What ProtectSystem= of the unit does to all but the service's own folder.
    if (denied == EROFS) {
      error.detail += concat("; a service may write there with ReadWritePaths=", data,
                             " in its unit, see systemctl edit");
    }
    break;
  }
  return error;
}

}  // namespace

Engine::Engine(Plan plan, HostServices services, StderrLog* log)
    : plan_(std::move(plan)),
      services_(services),
      log_(services.log, "broker"),
      operations_(std::move(plan_.settings), log) {
  auto settings = host_settings(plan_);
  plugins_ = std::make_unique<PluginHost>(std::move(plan_.plugins), std::move(settings), services_);
}

Engine::~Engine() = default;

Task<> Engine::start() {
  auto started = co_await start_steps();
  if (!started) {
    // The reason is what counts; a stop that fails as well says so in the log.
    auto stopped = co_await stop(Duration::zero());
    if (!stopped) {
      log_.error("stopping after the failed start failed too",
                 {{"error", to_string(stopped.error())}});
    }
  }
  co_return started;
}

Task<> Engine::start_steps() {
  step_ = Step::plugins;
  for (const auto kind : {"compression", "coordination", "storage"}) {
    MR_CO_CHECK(plugins_->start(kind));
    log_plugins(kind);
  }

  if (coordination_ == nullptr) coordination_ = &plugins_->coordination();

  step_ = Step::data;
  BrokerParts parts{
      services_.environment, plugins_->storage(), *coordination_, plugins_->codecs(), log_,
      services_.metrics};
  BrokerConfig config{.id = plan_.broker.id,
                      .rack = plan_.broker.rack,
                      .data = std::filesystem::absolute(plan_.broker.data).string(),
                      .memory_bytes = plan_.broker.memory_bytes,
                      .defaults = plan_.defaults};
  broker_ = std::make_unique<KernelBroker>(std::move(parts), std::move(config));
  broker_->offer<Operations>(operations_);
  broker_->offer<PluginStarts>(operations_);
  broker_open_ = true;
  doing_ = Doing::opening;
  auto opened = co_await broker_->open();
  if (!opened) co_return with_remedy(std::move(opened).error(), broker_->config().data);

  step_ = Step::plugins;
  doing_ = Doing::loading;
  MR_CO_CHECK(co_await start_operators());
  make_streams();
  make_replacements();
  MR_CO_CHECK(co_await streams_->try_configured());
  MR_CO_CHECK(plugins_->start("transport"));
  log_plugins("transport");
  tell_plugins();

  step_ = Step::listen;
  MR_CO_CHECK(co_await listen());
  MR_CO_CHECK(connect_peers());
  step_ = Step::data;
  doing_ = Doing::announcing;
  MR_CO_CHECK(co_await broker_->announce(endpoints_));
  MR_CO_CHECK(co_await broker_->make_declared(declared_topics(plan_.topics)));
  MR_CO_CHECK(co_await streams_->open());
  replacements_->open();
  step_ = Step::running;
  doing_ = Doing::serving;
  operations_.set_state(Operations::State::serving);
  co_return {};
}

std::string Engine::doing() const {
  switch (doing_.load()) {
    case Doing::starting: break;
    case Doing::opening: {
      const auto all = broker_->partitions_to_open();
      if (all == 0) return "joining the cluster";
      return concat("recovering ", broker_->partitions_open(), " of ", all, " logs");
    }
    case Doing::loading: return "starting operators";
    case Doing::announcing: return "waiting for the cluster's controller";
    case Doing::serving: return concat("serving ", broker_->partitions_open(), " partitions");
    case Doing::handing_over: return "handing over leaders";
    case Doing::ending: return "answering the last requests";
    case Doing::closing: return concat("closing ", broker_->partitions_open(), " partitions");
  }
  return "starting plugins";
}

Task<std::vector<Error>> Engine::check() {
  std::vector<Error> wrong;
  for (const auto kind : plugin_kinds) {
    auto of_kind = plugins_->try_start(kind);
    std::ranges::move(of_kind, std::back_inserter(wrong));
  }
  if (const auto link = find_peer_link(); !link && wrong.empty()) wrong.push_back(link.error());
  for (const auto& stream : plan_.streams) {
    auto trying = try_steps(stream, plugins_->settings(), services_);
    MR_CO_TRY(auto of_stream, co_await std::move(trying));
    std::ranges::move(of_stream, std::back_inserter(wrong));
  }
  plugins_->stop();
  co_return std::move(wrong);
}

Task<> Engine::start_operators() {
  MR_CO_CHECK(plugins_->start("operators"));
  log_plugins("operators");
  aggregates_ = std::make_unique<AggregateRouter>(*broker_, plan_.operators);
  for (auto& [plugin, factory] : plugins_->aggregates()) {
    AggregateOrigin origin{std::move(plugin.id), std::move(plugin.version), std::move(plugin.path)};
    MR_CO_CHECK(aggregates_->add(*factory, std::move(origin)));
  }
  aggregate_files_ = std::make_unique<AggregateFiles>(
      services_, plugins_->settings(), plugins_->planned("operators"), broker_->config().data);
  aggregates_->use(*aggregate_files_);
  MR_CO_CHECK(co_await aggregates_->open());
  broker_->offer<Aggregates>(*aggregates_);
  broker_->offer<AggregateAdmin>(*aggregates_);
  for (const auto& [plugin, extension] : plugins_->extensions(service_provider_id)) {
    MR_CO_CHECK(connect(*static_cast<ServiceProvider*>(extension), plugin));
  }
  co_return {};
}

void Engine::make_streams() {
  streams_ = std::make_unique<StreamService>(StreamParts{.environment = services_.environment,
                                                         .broker = *broker_,
                                                         .partitions = broker_->partitions(),
                                                         .coordination = *coordination_,
                                                         .log = services_.log,
                                                         .metrics = services_.metrics,
                                                         .files = PluginFiles(plan_.plugin_folders),
                                                         .settings = plugins_->settings(),
                                                         .data = broker_->config().data,
                                                         .trial = services_.trial},
                                             std::move(plan_.streams));
  broker_->offer<Streams>(*streams_);
}

void Engine::make_replacements() {
  LocalReplacements local;
  local.content = [&files = services_.environment.files()](const std::string& file) {
    return content_of(files, file);
  };
  local.replace = [this](const Replacement& wanted) {
    const auto& [name, step, file] = wanted;
    return step ? streams_->replace_unremembered(name, *step, file)
                : aggregates_->replace(name, file);
  };
  local.remember = [this](const std::string& stream) { return streams_->remember(stream); };
  replacements_ = std::make_unique<ReplacementService>(
      services_.environment, *coordination_, services_.log, plan_.broker.id, std::move(local));
  broker_->offer<Replacements>(*replacements_);
}

Result<> Engine::connect(ServiceProvider& provider, std::string_view plugin) {
  const auto connected = without_exceptions([&] { return provider.connect(*broker_); });
  if (!connected) {
    return Error{connected.error().code, std::string(plugin) + ": its service cannot be offered: " +
                                             connected.error().detail};
  }
  broker_->offer_all_of(provider);
  return {};
}

// Through the transport that is configured, or the first that can; none where nobody can.
Result<std::optional<NamedExtension>> Engine::find_peer_link() const {
  const auto& [wanted, place] = plan_.cluster;
  const auto links = plugins_->extensions(PeerLink::extension_id);
  for (const auto& plugin : plugins_->facts()) {
    if (plugin.kind != "transport" || (!wanted.empty() && plugin.instance != wanted)) continue;
    const auto link = std::ranges::find(links, plugin.id, &NamedExtension::plugin);
    if (link != links.end()) return std::optional(NamedExtension{plugin.instance, link->extension});
  }
  if (wanted.empty()) return std::optional<NamedExtension>();
  return Error{Errc::invalid_argument, concat(to_string(place), ": cluster.peer: the transport ",
                                              wanted, " does not connect brokers to each other")};
}

// nullptr where the transport does not carry records to other brokers.
RecordLink* Engine::record_link_of(std::string_view instance) const {
  const auto facts = plugins_->facts();
  const auto plugin = std::ranges::find_if(facts, [instance](const auto& fact) {
    return fact.kind == "transport" && fact.instance == instance;
  });
  const auto links = plugins_->extensions(RecordLink::extension_id);
  const auto link = std::ranges::find(links, plugin->id, &NamedExtension::plugin);
  return link == links.end() ? nullptr : static_cast<RecordLink*>(link->extension);
}

// Its addresses are those of the other brokers too.
Result<> Engine::connect_peers() {
  MR_TRY(const auto link, find_peer_link());
  if (!link) return {};
  const auto advertised = std::ranges::find(endpoints_, link->plugin, &Endpoint::listener);
  if (!plan_.cluster.peer.empty() && advertised == endpoints_.end()) {
    return Error{Errc::invalid_argument,
                 concat(to_string(plan_.cluster.peer_place), ": cluster.peer: the transport ",
                        link->plugin, " advertises no address to other brokers")};
  }
  auto& peers = *static_cast<PeerLink*>(link->extension);
  auto* records = record_link_of(link->plugin);
  links_ = {&peers, records};
  peer_listener_ = link->plugin;
  broker_->connect(peers, link->plugin);
  streams_->connect({&peers, records, link->plugin});
  return {};
}

Task<> Engine::listen() {
  for (auto& named : plugins_->transports()) {
    auto listening = listen_on(std::move(named));
    MR_CO_CHECK(co_await std::move(listening));
  }
  co_return {};
}

Task<> Engine::listen_on(NamedTransport named) {
  const auto& [name, transport] = named;
  auto endpoint = co_await transport->listen(*broker_);
  if (!endpoint) {
    auto [code, detail] = std::move(endpoint).error();
    detail = "transport." + name + ": " + std::move(detail);
    if (code == Errc::conflict) {
      detail += "; end what listens there, or set transport." + name + ".listen";
    }
    co_return Error{code, std::move(detail)};
  }
  listening_.push_back(transport);
  endpoint->listener = name;
  const bool advertised = !endpoint->advertised.host.empty();
  log_.info("listening",
            {{"transport", name},
             {"address", to_string(endpoint->bound)},
             {"advertised", advertised ? to_string(endpoint->advertised) : "nowhere"}});
  if (advertised) endpoints_.push_back(*std::move(endpoint));
  co_return {};
}

Task<> Engine::stop(Duration grace) {
  operations_.set_state(Operations::State::stopping);
  Result<> first_failure;
  const auto keep = [&first_failure](Result<> result) {
    if (!result && first_failure) first_failure = std::move(result);
  };
  if (step_ == Step::running) {
    // Clients find the new leaders while this broker still answers.
    doing_ = Doing::handing_over;
    keep(co_await broker_->hand_over(hand_over_max));
  }
  if (broker_open_) doing_ = Doing::ending;
  // First, so that requests which wait for an aggregate are answered, and transports can end.
  if (aggregates_ && broker_open_) {
    auto closed = co_await aggregates_->close();
    keep(std::move(closed));
  }
  if (replacements_ && broker_open_) {
    auto closed = co_await replacements_->close();
    keep(std::move(closed));
  }
  for (auto* transport : std::views::reverse(listening_)) {
    auto stopped = co_await transport->stop(grace);
    keep(std::move(stopped));
  }
  listening_.clear();
  if (streams_ && broker_open_) {
    auto closed = co_await streams_->close();
    keep(std::move(closed));
  }
  plugins_->stop("operators");
  if (broker_open_) {
    broker_open_ = false;
    doing_ = Doing::closing;
    auto closed = co_await broker_->close();
    keep(std::move(closed));
  }
  // Not before: through one of them followers and the controller talk to other brokers.
  plugins_->stop("transport");
  replacements_.reset();
  streams_.reset();
  aggregates_.reset();
  plugins_->stop();
  co_return first_failure;
}

// To whoever asks, and to monitoring.
void Engine::tell_plugins() {
  auto facts = plugins_->facts();
  for (auto& fact : facts) {
    const auto replaced = replaced_.find(fact.instance);
    // From the same file as before, which is another one by now.
    if (fact.kind == "operators" && replaced != replaced_.end()) {
      fact.version = replaced->second->version;
    }
  }
  const auto note = [this](const std::vector<PluginFact>& plugins, std::int64_t value) {
    for (const auto& plugin : plugins) {
      services_.metrics
          .gauge("millrace_plugin_info", "Plugins that run",
                 {{"id", plugin.id},
                  {"instance", plugin.instance},
                  {"kind", plugin.kind},
                  {"version", plugin.version}})
          .set(value);
    }
  };
  note(operations_.plugins(), 0);
  note(facts, 1);
  operations_.set_plugins(std::move(facts), services_.environment.clock().wall());
}

void Engine::log_plugins(std::string_view kind) const {
  for (const auto& plugin : plugins_->facts()) {
    if (plugin.kind != kind) continue;
    log_.info("plugin started", {{"plugin", plugin.id},
                                 {"instance", plugin.instance},
                                 {"version", plugin.version},
                                 {"path", plugin.path}});
  }
}

}  // namespace millrace::kernel
