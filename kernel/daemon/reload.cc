#include "kernel/daemon/reload.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace millrace::kernel {

namespace {

bool is_reloaded(std::string_view key) {
  return key == "log.level" || key.starts_with("log.levels.");
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

}  // namespace millrace::kernel
