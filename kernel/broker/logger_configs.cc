#include "kernel/broker/logger_configs.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace millrace::kernel {

namespace {

constexpr std::string_view root = "root";

constexpr std::pair<std::string_view, LogLevel> levels[] = {
    {"TRACE", LogLevel::trace},  {"DEBUG", LogLevel::debug}, {"INFO", LogLevel::info},
    {"WARN", LogLevel::warning}, {"ERROR", LogLevel::error}, {"FATAL", LogLevel::error}};

std::string_view text_of(LogLevel level) {
  return std::ranges::find(levels, level, [](const auto& one) { return one.second; })->first;
}

std::optional<LogLevel> level_of(std::string_view text) {
  const auto* found = std::ranges::find(levels, text, [](const auto& one) { return one.first; });
  return found == std::end(levels) ? std::nullopt : std::optional(found->second);
}

// By subsystem; "" has that of all others.
using Levels = std::map<std::string, LogLevel>;

Levels levels_of(const Operations& operations) {
  Levels levels_by_name;
  for (const auto& [subsystem, level] : operations.log_levels()) levels_by_name[subsystem] = level;
  return levels_by_name;
}

// Its own level, or that of what is above it.
LogLevel effective(std::string subsystem, const Levels& own) {
  while (true) {
    if (const auto found = own.find(subsystem); found != own.end()) return found->second;
    if (subsystem.empty()) return LogLevel::info;
    const auto dot = subsystem.rfind('.');
    subsystem.resize(dot == std::string::npos ? 0 : dot);
  }
}

std::optional<ConfigRefusal> check(const ConfigChange& change) {
  if (change.operation == ConfigOperation::remove) {
    if (change.name != root) return std::nullopt;
    return ConfigRefusal{ErrorCode::invalid_request,
                         "Removing the log level of the root logger is not allowed"};
  }
  if (change.operation != ConfigOperation::set) {
    return ConfigRefusal{ErrorCode::invalid_request,
                         "Levels are set and deleted; they are no lists"};
  }
  if (change.value && level_of(*change.value)) return std::nullopt;
  return ConfigRefusal{ErrorCode::invalid_config,
                       "Invalid level " + change.value.value_or("null") + " for logger " +
                           change.name + ": expected TRACE, DEBUG, INFO, WARN, ERROR or FATAL"};
}

}  // namespace

std::vector<ConfigEntry> describe_loggers(const Operations& operations) {
  auto told = levels_of(operations);
  const auto add = [&told, own = told](const std::string& subsystem) {
    told.emplace(subsystem, effective(subsystem, own));
  };
  add("broker");
  for (const auto& plugin : operations.plugins()) add(plugin.kind + "." + plugin.instance);

  std::vector<ConfigEntry> entries;
  for (const auto& [subsystem, level] : told) {
    entries.push_back({.name = subsystem.empty() ? std::string(root) : subsystem,
                       .value = std::string(text_of(level)),
                       .source = ConfigSource::broker_logger,
                       .synonyms = {},
                       .documentation = {}});
  }
  std::ranges::sort(entries, {}, &ConfigEntry::name);
  return entries;
}

std::optional<ConfigRefusal> alter_loggers(Operations& operations,
                                           const ConfigAlteration& alteration, bool validate_only) {
  if (alteration.replace_all) {
    return ConfigRefusal{ErrorCode::invalid_request, "Levels are changed one by one, not replaced"};
  }
  std::set<std::string_view> names;
  for (const auto& change : alteration.changes) {
    if (!names.insert(change.name).second) {
      return ConfigRefusal{ErrorCode::invalid_request, "Error due to duplicate config keys"};
    }
    if (auto refusal = check(change)) return refusal;
  }
  if (validate_only) return std::nullopt;
  for (const auto& change : alteration.changes) {
    const auto level = change.operation == ConfigOperation::set ? level_of(*change.value)
                                                                : std::optional<LogLevel>();
    const auto done =
        operations.set_log_level(change.name == root ? std::string_view() : change.name, level);
    if (!done) return ConfigRefusal{ErrorCode::invalid_config, done.error().detail};
  }
  return std::nullopt;
}

}  // namespace millrace::kernel
