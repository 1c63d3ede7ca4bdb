#include "kernel/daemon/plan_remarks.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

constexpr std::string_view admin_plugin = "http";

std::string place_of(const Plan& plan, std::string_view key) {
  const auto fact = std::ranges::find(plan.settings, key, &SettingFact::key);
  return fact == plan.settings.end() ? std::string() : concat(fact->source, ": ");
}

}  // namespace

std::vector<std::string> warnings_of(const Plan& plan) {
  std::vector<std::string> warnings;
  for (const auto& folder : plan.plugin_folders) {
    std::error_code none;
    if (std::filesystem::is_directory(folder, none)) continue;
    const bool is_there = std::filesystem::exists(folder, none);
    warnings.push_back(
        concat(place_of(plan, "plugins.path"),
               "plugins.path: ", is_there ? "this is no folder: " : "there is no folder ",
               folder.empty() ? "\"\"" : folder, "; expected one with KIND/NAME.so in it"));
  }
  return warnings;
}

bool has_no_admin(const Plan& plan) {
  return std::ranges::none_of(plan.plugins, [](const PlannedPlugin& plugin) {
    return plugin.request.kind == "transport" && plugin.request.plugin == admin_plugin;
  });
}

}  // namespace millrace::kernel
