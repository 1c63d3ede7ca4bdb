// The part of Engine for a configuration that is read again while it runs.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "kernel/broker/broker.h"
#include "kernel/config/text.h"
#include "kernel/daemon/engine.h"
#include "kernel/daemon/plugin_changes.h"
#include "kernel/daemon/reload.h"
#include "kernel/streams/aggregate_router.h"
#include "kernel/streams/stream_service.h"

namespace millrace::kernel {

namespace {

// What a transport that is gone from the configuration leaves to requests in flight.
constexpr Duration end_grace = std::chrono::seconds(3);

std::string not_done(std::string_view what, const Error& why) {
  return concat(what, ": not done: ", why.detail);
}

bool is_same(const TopicSettings& one, const TopicSettings& other) {
  return one.name == other.name && one.partitions == other.partitions &&
         one.replication_factor == other.replication_factor && one.configs == other.configs;
}

// Names of those that were not declared so before.
std::set<std::string> changed_topics(const std::vector<TopicSettings>& before,
                                     const std::vector<TopicSettings>& now) {
  std::set<std::string> changed;
  for (const auto& topic : now) {
    const auto same = [&topic](const TopicSettings& other) { return is_same(topic, other); };
    if (std::ranges::none_of(before, same)) changed.insert(topic.name);
  }
  return changed;
}

}  // namespace

// ---- plugins of the broker itself ----

// Other brokers are reached by it, or reach us.
bool Engine::needs_to_run(const PlannedPlugin& plugin) const {
  const auto& [kind, instance, file, place] = plugin.request;
  if (instance == peer_listener_) return true;
  for (const auto* id : {PeerLink::extension_id, RecordLink::extension_id}) {
    const void* link = plugins_->extension_of(kind, instance, id);
    if (link != nullptr && contains(links_, link)) return true;
  }
  return false;
}

// All of them, or none.
Task<> Engine::start_plugins(const std::vector<PlannedPlugin>& plugins) {
  auto starting = start_each(plugins);
  auto started = co_await std::move(starting);
  if (started) co_return {};
  for (const auto& plugin : plugins) {
    const auto& [kind, instance, file, place] = plugin.request;
    if (kind == "transport") {
      auto ending = end_transport(instance, Duration::zero());
      const auto ended = co_await std::move(ending);
      if (!ended) log_.error("ending a plugin failed", {{"error", to_string(ended.error())}});
    }
    plugins_->retire(kind, instance);
  }
  co_return std::move(started);
}

Task<> Engine::start_each(const std::vector<PlannedPlugin>& plugins) {
  for (const auto& plugin : plugins) MR_CO_CHECK(plugins_->add(plugin));
  for (auto& named : plugins_->transports()) {
    if (contains(listening_, named.transport)) continue;
    auto listening = listen_on(std::move(named));
    MR_CO_CHECK(co_await std::move(listening));
  }
  co_return {};
}

Task<> Engine::end_transport(std::string instance, Duration grace) {
  const auto all = plugins_->transports();
  const auto named = std::ranges::find(all, instance, &NamedTransport::name);
  if (named == all.end()) co_return {};
  if (std::erase(listening_, named->transport) == 0) co_return {};
  std::erase_if(endpoints_, [&](const Endpoint& one) { return one.listener == instance; });
  co_return co_await named->transport->stop(grace);
}

// Those that have started, and that are to end. Clients are told before a transport ends.
Task<> Engine::use_plugins(const PluginChanges& changes, ReloadOutcome& outcome) {
  if (!changes.starts.empty()) {
    MR_CO_CHECK(co_await broker_->use(plugins_->codecs()));
  }
  for (const auto& plugin : changes.starts) {
    outcome.done.push_back(concat("plugin ", name_of(plugin), ": started"));
    if (plugin.request.kind == "transport") endpoints_told_ = false;
  }
  for (const auto& instance : changes.ends) {
    std::erase_if(endpoints_, [&](const Endpoint& one) { return one.listener == instance; });
    endpoints_told_ = false;
  }
  auto telling = tell_addresses(outcome);
  MR_CO_CHECK(co_await std::move(telling));
  auto ending = end_transports(changes.ends, outcome);
  MR_CO_CHECK(co_await std::move(ending));
  if (!changes.starts.empty() || !changes.ends.empty()) tell_plugins();
  co_return {};
}

Task<> Engine::tell_addresses(ReloadOutcome& outcome) {
  if (endpoints_told_) co_return {};
  auto announcing = broker_->announce_again(endpoints_);
  const auto announced = co_await std::move(announcing);
  if (announced) {
    endpoints_told_ = true;
  } else if (announced.error().code == Errc::cancelled) {
    co_return announced;
  } else {
    outcome.failed.push_back(not_done("the addresses of this broker are told", announced.error()));
  }
  co_return {};
}

Task<> Engine::end_transports(const std::vector<std::string>& instances, ReloadOutcome& outcome) {
  for (const auto& instance : instances) {
    const auto what = concat("transport ", instance, ": ended");
    auto ending = end_transport(instance, end_grace);
    const auto ended = co_await std::move(ending);
    plugins_->retire("transport", instance);
    if (ended) {
      outcome.done.push_back(what);
    } else {
      outcome.failed.push_back(not_done(what, ended.error()));
    }
  }
  co_return {};
}

// ---- streams, topics, aggregates ----

Task<> Engine::change_streams(std::vector<PlannedStream> wanted, ReloadOutcome& outcome) {
  const auto streams = wanted;
  auto changing = streams_->reconfigure(std::move(wanted));
  MR_CO_TRY(const auto changes, co_await std::move(changing));
  for (const auto& change : changes) {
    auto what = to_string(change, streams);
    if (change.done) {
      outcome.done.push_back(std::move(what));
    } else {
      outcome.failed.push_back(not_done(what, change.done.error()));
    }
  }
  co_return {};
}

Task<> Engine::change_defaults(const std::map<std::string, std::string>& wanted,
                               ReloadOutcome& outcome) {
  auto defaults = defaults_after_reload(plan_.defaults, wanted);
  std::vector<std::pair<std::string, std::string>> changed;
  std::ranges::set_symmetric_difference(defaults, plan_.defaults, std::back_inserter(changed));
  std::set<std::string> names;
  for (const auto& [name, value] : changed) names.insert(name);
  if (names.empty()) co_return {};
  MR_CO_CHECK(co_await broker_->use_defaults(defaults));
  plan_.defaults = std::move(defaults);
  for (const auto& name : names) outcome.done.push_back(concat("defaults: ", name, " counts now"));
  co_return {};
}

Task<> Engine::make_topics(std::vector<TopicSettings> wanted, ReloadOutcome& outcome) {
  using State = DeclaredTopic::State;
  const auto changed = changed_topics(plan_.topics, wanted);
  plan_.topics = std::move(wanted);
  auto making = broker_->make_declared(declared_topics(plan_.topics));
  MR_CO_TRY(const auto topics, co_await std::move(making));
  for (const auto& [name, state, detail] : topics) {
    const auto topic = concat("topic ", name);
    // What differs or waits since the last time has been told then.
    const bool is_news = changed.contains(name);
    if (state == State::made) {
      outcome.done.push_back(concat(topic, ": made"));
    } else if (state == State::refused && is_news) {
      outcome.failed.push_back(concat(topic, ": not made: ", detail));
    } else if (state == State::differs && is_news) {
      outcome.left.push_back(concat(topic, " stays as it is: ", detail));
    } else if (state == State::waits && is_news) {
      outcome.left.push_back(concat(topic, " is made later: ", detail));
    }
  }
  co_return {};
}

Task<> Engine::replace_aggregates(const std::vector<PlannedPlugin>& wanted,
                                  ReloadOutcome& outcome) {
  for (const auto& plugin : wanted) {
    const auto* before = find_plugin(plugins_->planned(), plugin);
    if (before == nullptr || !has_aggregates_alone(*before, plugin)) continue;
    const auto known = replaced_.find(plugin.request.instance);
    const auto* running = known == replaced_.end() ? before->library.descriptor : known->second;
    if (running == plugin.library.descriptor) continue;
    auto replacing = replace_aggregates_of(plugin, outcome);
    MR_CO_TRY(const bool all, co_await std::move(replacing));
    if (!all) continue;
    replaced_[plugin.request.instance] = plugin.library.descriptor;
    tell_plugins();
  }
  co_return {};
}

Task<bool> Engine::replace_aggregates_of(const PlannedPlugin& plugin, ReloadOutcome& outcome) {
  auto asking = aggregates_->list();
  MR_CO_TRY(const auto aggregates, co_await std::move(asking));
  bool all = true;
  for (const auto& aggregate : aggregates) {
    if (aggregate.plugin != plugin.library.descriptor->id) continue;
    auto replacing = aggregates_->replace(aggregate.name, plugin.library.path);
    const auto replaced = co_await std::move(replacing);
    const auto what = concat("aggregate ", aggregate.name, ": replaced by version ",
                             plugin.library.descriptor->version);
    if (replaced) {
      outcome.done.push_back(what);
    } else {
      all = false;
      outcome.failed.push_back(not_done(what, replaced.error()));
    }
  }
  co_return all;
}

// ---- the whole ----

// What may be refused comes first, and then, as at a start, topics before streams that use them.
Task<ReloadOutcome> Engine::reload(Plan wanted) {
  if (step_ != Step::running) co_return Error{Errc::closed, "the broker is starting or stopping"};
  ReloadOutcome outcome;
  const auto needs = [this](const PlannedPlugin& plugin) { return needs_to_run(plugin); };
  const auto changes = plugin_changes(plugins_->planned(), wanted.plugins, needs);
  outcome.at_restart = changes.at_restart;
  auto trying = streams_->try_to_reconfigure(wanted.streams);
  MR_CO_CHECK(co_await std::move(trying));
  auto starting = start_plugins(changes.starts);
  MR_CO_CHECK(co_await std::move(starting));

  auto using_them = use_plugins(changes, outcome);
  MR_CO_CHECK(co_await std::move(using_them));
  auto taking = change_defaults(wanted.defaults, outcome);
  MR_CO_CHECK(co_await std::move(taking));
  auto making = make_topics(std::move(wanted.topics), outcome);
  MR_CO_CHECK(co_await std::move(making));
  auto changing = change_streams(std::move(wanted.streams), outcome);
  const auto changed = co_await std::move(changing);
  if (!changed) outcome.failed.push_back(not_done("streams", changed.error()));
  auto replacing = replace_aggregates(wanted.plugins, outcome);
  MR_CO_CHECK(co_await std::move(replacing));

  const auto keys = reloaded_keys(changes);
  const auto before = operations_.settings();
  for (auto& option : changed_at_restart(before, wanted.settings, keys)) {
    outcome.at_restart.push_back(std::move(option));
  }
  operations_.set_settings(settings_after_reload(before, wanted.settings, keys));
  co_return std::move(outcome);
}

}  // namespace millrace::kernel
