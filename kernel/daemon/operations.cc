#include "kernel/daemon/operations.h"

#include <algorithm>

#include "kernel/config/text.h"
#include "kernel/log/stderr_log.h"

namespace millrace::kernel {

namespace {

// What is above "storage.filelog.x": "storage.filelog" and "storage".
bool is_above(std::string_view above, std::string_view subsystem) {
  return subsystem.size() > above.size() && subsystem.starts_with(above) &&
         subsystem[above.size()] == '.';
}

bool is_same(const PluginFact& one, const PluginFact& other) {
  return one.kind == other.kind && one.instance == other.instance && one.id == other.id &&
         one.version == other.version && one.path == other.path;
}

}  // namespace

void BrokerOperations::set_plugins(std::vector<PluginFact> plugins, Timestamp now) {
  const std::lock_guard lock(facts_mutex_);
  std::vector<PluginStart> starts;
  for (const auto& plugin : plugins) {
    const auto before = std::ranges::find_if(
        plugins_, [&plugin](const PluginFact& other) { return is_same(plugin, other); });
    const auto since = before == plugins_.end()
                           ? now
                           : starts_[static_cast<std::size_t>(before - plugins_.begin())].since;
    starts.push_back({plugin.kind, plugin.instance, since});
  }
  plugins_ = std::move(plugins);
  starts_ = std::move(starts);
}

// What writes log lines, and what the configuration has a level for.
std::vector<std::string> BrokerOperations::subsystems() const {
  std::vector<std::string> names{"broker", "environment"};
  for (const auto& plugin : plugins()) names.push_back(plugin.kind + "." + plugin.instance);
  for (const auto& [subsystem, level] : log_->levels().of) names.push_back(subsystem);
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

std::vector<LogLevelFact> BrokerOperations::log_levels() const {
  if (log_ == nullptr) return {};
  const auto levels = log_->levels();
  std::vector<LogLevelFact> facts;
  facts.push_back({"", levels.others});
  for (const auto& [subsystem, level] : levels.of) facts.push_back({subsystem, level});
  return facts;
}

Result<> BrokerOperations::set_log_level(std::string_view subsystem,
                                         std::optional<LogLevel> level) {
  if (log_ == nullptr) return Error{Errc::unsupported, "this broker's log has no levels"};
  if (subsystem.empty() && !level) {
    return Error{Errc::invalid_argument, "the level for all that has none cannot be taken away"};
  }
  if (level && !subsystem.empty()) {
    const auto known = subsystems();
    const bool is_known = std::ranges::any_of(known, [&](const std::string& name) {
      return name == subsystem || is_above(subsystem, name);
    });
    if (!is_known) {
      return Error{Errc::invalid_argument, "nothing logs as \"" + std::string(subsystem) + "\"" +
                                               nearest_hint(subsystem, known) + "; known are " +
                                               joined(known)};
    }
  }
  const std::lock_guard lock(levels_mutex_);
  auto levels = log_->levels();
  if (subsystem.empty()) {
    levels.others = *level;
  } else if (level) {
    levels.of.insert_or_assign(std::string(subsystem), *level);
  } else {
    levels.of.erase(std::string(subsystem));
  }
  log_->set_levels(std::move(levels));
  return {};
}

}  // namespace millrace::kernel
