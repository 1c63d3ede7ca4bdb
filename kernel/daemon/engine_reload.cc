// The part of Engine for a configuration that is read again while it runs.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "kernel/broker/broker.h"
#include "kernel/config/text.h"
#include "kernel/daemon/engine.h"
#include "kernel/daemon/reload.h"
#include "kernel/streams/aggregate_router.h"
#include "kernel/streams/stream_service.h"

namespace millrace::kernel {

namespace {

std::string name_of(const PlannedPlugin& plugin) {
  return concat(plugin.request.kind, "/", plugin.request.instance);
}

const PlannedPlugin* find_plugin(const std::vector<PlannedPlugin>& plugins,
                                 const PlannedPlugin& like) {
  const auto found = std::ranges::find_if(plugins, [&like](const PlannedPlugin& one) {
    return one.request.kind == like.request.kind && one.request.instance == like.request.instance;
  });
  return found == plugins.end() ? nullptr : &*found;
}

/// A service is held on to by those who use it.
bool has_aggregates_alone(const PlannedPlugin& running, const PlannedPlugin& wanted) {
  return running.request.kind == "operators" &&
         std::string_view(running.library.descriptor->id) == wanted.library.descriptor->id &&
         *running.library.descriptor->provides == '\0' &&
         *wanted.library.descriptor->provides == '\0';
}

/// Plugins of the broker itself, which start and end with it.
std::vector<std::string> plugins_at_restart(const std::vector<PlannedPlugin>& running,
                                            const std::vector<PlannedPlugin>& wanted) {
  std::vector<std::string> told;
  for (const auto& plugin : wanted) {
    const auto* before = find_plugin(running, plugin);
    if (before == nullptr) {
      told.push_back(concat("plugin ", name_of(plugin), " starts"));
    } else if (before->request.plugin != plugin.request.plugin) {
      told.push_back(concat("plugin ", name_of(plugin), " is ", plugin.request.plugin));
    } else if (before->library.descriptor != plugin.library.descriptor &&
               !has_aggregates_alone(*before, plugin)) {
      told.push_back(concat("plugin ", name_of(plugin), " has another file"));
    }
  }
  for (const auto& plugin : running) {
    if (find_plugin(wanted, plugin) == nullptr) {
      told.push_back(concat("plugin ", name_of(plugin), " ends"));
    }
  }
  return told;
}

}  // namespace

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
    if (all) replaced_[plugin.request.instance] = plugin.library.descriptor;
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
      outcome.failed.push_back(concat(what, ": not done: ", replaced.error().detail));
    }
  }
  co_return all;
}

Task<ReloadOutcome> Engine::reload(Plan wanted) {
  if (step_ != Step::running) co_return Error{Errc::closed, "the broker is starting or stopping"};
  ReloadOutcome outcome;
  outcome.at_restart = plugins_at_restart(plugins_->planned(), wanted.plugins);
  const auto streams = wanted.streams;
  auto changing = streams_->reconfigure(std::move(wanted.streams));
  MR_CO_TRY(const auto changes, co_await std::move(changing));
  for (const auto& change : changes) {
    auto what = to_string(change, streams);
    if (change.done) {
      outcome.done.push_back(std::move(what));
    } else {
      outcome.failed.push_back(concat(what, ": not done: ", change.done.error().detail));
    }
  }
  auto replacing = replace_aggregates(wanted.plugins, outcome);
  MR_CO_CHECK(co_await std::move(replacing));
  const auto before = operations_.settings();
  for (auto& option : changed_at_restart(before, wanted.settings)) {
    outcome.at_restart.push_back(std::move(option));
  }
  operations_.set_settings(settings_after_reload(before, wanted.settings));
  co_return std::move(outcome);
}

}  // namespace millrace::kernel
