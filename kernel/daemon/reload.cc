#include "kernel/daemon/reload.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "kernel/config/document.h"
#include "kernel/config/text.h"
#include "kernel/partition/config_options.h"

namespace millrace::kernel {

namespace {

// "transport.kafka.", of every transport that is set up.
std::set<std::string> transport_tables(const std::vector<SettingFact>& settings) {
  constexpr std::string_view kind = "transport.";
  std::set<std::string> tables;
  for (const auto& setting : settings) {
    if (!setting.key.starts_with(kind)) continue;
    const bool quoted = setting.key.compare(kind.size(), 1, "\"") == 0;
    const auto name_end = quoted ? setting.key.find('"', kind.size() + 1) : kind.size();
    const auto end = setting.key.find('.', name_end);
    if (end != std::string::npos) tables.insert(setting.key.substr(0, end + 1));
  }
  return tables;
}

std::string key_of_default(std::string_view name) { return concat("defaults.", quoted_key(name)); }

const std::set<std::string, std::less<>>& reloadable_defaults() {
  static const auto keys = [] {
    std::set<std::string, std::less<>> all;
    for (const auto* option = broker_defaults(); option->name != nullptr; ++option) {
      if ((option->flags & MILLRACE_OPTION_RELOADABLE) == 0) continue;
      all.insert(key_of_default(option->name));
    }
    return all;
  }();
  return keys;
}

using KeyAndValue = std::pair<std::string, std::string>;

std::vector<KeyAndValue> fixed_options(const std::vector<SettingFact>& settings,
                                       const std::vector<std::string>& more) {
  std::vector<KeyAndValue> options;
  for (const auto& setting : settings) {
    if (!is_reloaded(setting.key, more)) options.emplace_back(setting.key, setting.value);
  }
  std::ranges::sort(options);
  return options;
}

}  // namespace

bool is_reloaded(std::string_view key, const std::vector<std::string>& more) {
  if (key == "log.level") return true;
  for (const std::string_view table : {"log.levels.", "stream.", "topic."}) {
    if (key.starts_with(table)) return true;
  }
  if (reloadable_defaults().contains(key)) return true;
  return std::ranges::any_of(more, [key](const std::string& name) {
    return name.ends_with('.') ? key.starts_with(name) : key == name;
  });
}

std::vector<std::string> changed_at_restart(const std::vector<SettingFact>& running,
                                            const std::vector<SettingFact>& wanted,
                                            const std::vector<std::string>& more) {
  std::vector<KeyAndValue> changed;
  std::ranges::set_symmetric_difference(fixed_options(running, more), fixed_options(wanted, more),
                                        std::back_inserter(changed));
  std::vector<std::string> keys;
  for (auto& option : changed) keys.push_back(std::move(option.first));
  const auto repeated = std::ranges::unique(keys);  // with its value before and after
  keys.erase(repeated.begin(), repeated.end());
  return keys;
}

std::vector<std::string> transports_that_change(const std::vector<SettingFact>& running,
                                                const std::vector<SettingFact>& wanted) {
  const auto before = transport_tables(running);
  const auto after = transport_tables(wanted);
  std::vector<std::string> changed;
  std::ranges::set_symmetric_difference(before, after, std::back_inserter(changed));
  return changed;
}

std::vector<SettingFact> settings_after_reload(const std::vector<SettingFact>& running,
                                               const std::vector<SettingFact>& wanted,
                                               const std::vector<std::string>& more) {
  const auto changes = [&more](const SettingFact& one) { return is_reloaded(one.key, more); };
  std::vector<SettingFact> settings;
  std::ranges::copy_if(running, std::back_inserter(settings), std::not_fn(changes));
  std::ranges::copy_if(wanted, std::back_inserter(settings), changes);
  std::ranges::sort(settings, {}, &SettingFact::key);
  return settings;
}

std::map<std::string, std::string> defaults_after_reload(
    const std::map<std::string, std::string>& running,
    const std::map<std::string, std::string>& wanted) {
  const auto changes = [](const auto& entry) { return is_reloaded(key_of_default(entry.first)); };
  std::map<std::string, std::string> defaults;
  std::ranges::copy_if(running, std::inserter(defaults, defaults.end()), std::not_fn(changes));
  std::ranges::copy_if(wanted, std::inserter(defaults, defaults.end()), changes);
  return defaults;
}

std::string status_of(const ReloadOutcome& outcome) {
  std::vector<std::string> parts;
  if (!outcome.failed.empty()) {
    parts.push_back(concat("reloaded in part: ", joined(outcome.failed, "; ")));
  }
  if (!outcome.left.empty()) parts.push_back(joined(outcome.left, "; "));
  if (outcome.failed.empty() && !outcome.at_restart.empty()) {
    parts.push_back(concat("from the next start: ", joined(outcome.at_restart)));
  }
  return joined(parts, "; ");
}

}  // namespace millrace::kernel
