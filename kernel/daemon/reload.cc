#include "kernel/daemon/reload.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

bool is_reloaded(std::string_view key) {
  return key == "log.level" || key.starts_with("log.levels.") || key.starts_with("stream.");
}

using KeyAndValue = std::pair<std::string, std::string>;

std::vector<KeyAndValue> fixed_options(const std::vector<SettingFact>& settings) {
  std::vector<KeyAndValue> options;
  for (const auto& setting : settings) {
    if (!is_reloaded(setting.key)) options.emplace_back(setting.key, setting.value);
  }
  std::ranges::sort(options);
  return options;
}

}  // namespace

std::vector<std::string> changed_at_restart(const std::vector<SettingFact>& running,
                                            const std::vector<SettingFact>& wanted) {
  std::vector<KeyAndValue> changed;
  std::ranges::set_symmetric_difference(fixed_options(running), fixed_options(wanted),
                                        std::back_inserter(changed));
  std::vector<std::string> keys;
  for (auto& option : changed) keys.push_back(std::move(option.first));
  const auto repeated = std::ranges::unique(keys);  // with its value before and after
  keys.erase(repeated.begin(), repeated.end());
  return keys;
}

std::vector<SettingFact> settings_after_reload(const std::vector<SettingFact>& running,
                                               const std::vector<SettingFact>& wanted) {
  std::vector<SettingFact> settings;
  std::ranges::copy_if(running, std::back_inserter(settings),
                       [](const SettingFact& one) { return !is_reloaded(one.key); });
  std::ranges::copy_if(wanted, std::back_inserter(settings),
                       [](const SettingFact& one) { return is_reloaded(one.key); });
  std::ranges::sort(settings, {}, &SettingFact::key);
  return settings;
}

std::string status_of(const ReloadOutcome& outcome) {
  if (!outcome.failed.empty()) return concat("reloaded in part: ", joined(outcome.failed, "; "));
  if (outcome.at_restart.empty()) return {};
  return concat("from the next start: ", joined(outcome.at_restart));
}

}  // namespace millrace::kernel
