#include "kernel/cli/config_reference.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernel/broker/group_options.h"
#include "kernel/config/config.h"
#include "kernel/config/document.h"
#include "kernel/config/kernel_options.h"
#include "kernel/config/text.h"
#include "kernel/host/library.h"
#include "kernel/host/plugin_files.h"
#include "kernel/host/trial.h"
#include "kernel/partition/config_options.h"

namespace millrace::kernel::cli {

namespace {

constexpr const char* of_the_file = "millrace.toml";

// The table of millrace.toml that configures a plugin; codecs have none.
std::string table_of(std::string_view kind, const std::string& name) {
  if (kind == tables::coordination || kind == tables::storage) return std::string(kind);
  return concat(kind, ".", name);
}

void add_table(std::vector<ExplainedSetting>& settings, std::string_view table,
               const MillraceOption* options,
               const std::vector<std::pair<std::string, std::string>>& more = {}) {
  for (const auto* option = options; option->name != nullptr; ++option) {
    settings.push_back({concat(table, ".", quoted_key(option->name)), of_the_file, option, more});
  }
}

void add_plugins(std::vector<ExplainedSetting>& settings, const Context& context) {
  for (const auto& plugin : plugin_tables(context)) {
    const std::vector<std::pair<std::string, std::string>> more{{"plugin", plugin.plugin}};
    add_table(settings, plugin.of_steps ? "stream.NAME.steps" : plugin.table, plugin.options, more);
  }
}

std::string inherited_by(const TopicOption& topic) {
  std::vector<std::string> names;
  for (const auto& synonym : topic.synonyms) {
    if (synonym.name != nullptr) names.emplace_back(synonym.name);
  }
  return names.empty() ? "no setting of the broker" : joined(names);
}

const char* set_where(const BrokerOption& broker) {
  if (broker.has(config_dynamic)) return "while the broker runs, or in [defaults]";
  return broker.has(config_fact) ? "not under this name" : "in [defaults]";
}

// A key in parts, whether or not parts with dots are in quotes.
std::vector<std::string> parts_of(std::string_view key) {
  std::vector<std::string> parts(1);
  for (const char c : key) {
    if (c == '.') {
      parts.emplace_back();
    } else if (c != '"') {
      parts.back() += c;
    }
  }
  return parts;
}

bool is_placeholder(std::string_view part) { return part == "NAME" || part == "SUBSYSTEM"; }

// "stream.NAME.sink" means any stream's, and "log.levels.SUBSYSTEM" all that stands below.
bool matches(std::string_view pattern, std::string_view key) {
  const auto wanted = parts_of(pattern);
  const auto found = parts_of(key);
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    if (at >= found.size() || found[at].empty()) return false;
    if (wanted[at] == "SUBSYSTEM") return true;
    if (wanted[at] != found[at] && !is_placeholder(wanted[at])) return false;
  }
  return wanted.size() == found.size();
}

bool has_placeholder(std::string_view key) {
  return std::ranges::any_of(parts_of(key), is_placeholder);
}

}  // namespace

std::vector<PluginTable> plugin_tables(const Context& context, const WantedPlugin& wanted) {
  std::vector<PluginTable> all;
  const PluginFiles files(context.plugin_folders);
  for (const auto kind : plugin_kinds) {
    for (const auto& name : files.names(kind)) {
      auto plugin = concat(kind, "/", name);
      auto table = table_of(kind, name);
      if (wanted && !wanted(plugin, table)) continue;
      const auto path = files.find(kind, name);
      const auto library = path ? load_plugin(*path, kind) : Result<PluginLibrary>(path.error());
      if (!library) continue;
      const auto& facts = *library->descriptor;
      all.push_back({std::move(plugin), facts.summary == nullptr ? "" : facts.summary,
                     std::move(table), facts.options,
                     kind == tables::operators && *facts.provides == '\0'});
    }
  }
  return all;
}

std::vector<ExplainedSetting> all_settings(const Context& context) {
  std::vector<ExplainedSetting> settings;
  for (const auto& [table, options] : kernel_options()) add_table(settings, table, options);
  add_plugins(settings, context);
  add_table(settings, tables::defaults, broker_defaults());
  add_table(settings, "topic.NAME", topic_table_settings());
  for (const auto& topic : topic_options()) {
    settings.push_back(
        {topic.option.name, "a topic", &topic.option, {{"inherits", inherited_by(topic)}}});
  }
  for (const auto& broker : broker_config_options()) {
    settings.push_back(
        {broker.option.name, "a broker", &broker.option, {{"is set", set_where(broker)}}});
  }
  for (const auto& group : group_options()) {
    settings.push_back({group.option.name, "a group", &group.option, {{"inherits", group.broker}}});
  }
  return settings;
}

Result<std::vector<ExplainedSetting>> explain_setting(const Context& context,
                                                      const std::string& key) {
  const auto all = all_settings(context);
  std::vector<ExplainedSetting> exact;
  std::vector<ExplainedSetting> by_pattern;
  std::vector<std::string> keys;
  for (const auto& setting : all) {
    keys.push_back(setting.key);
    if (!matches(setting.key, key)) continue;
    (has_placeholder(setting.key) && setting.key != key ? by_pattern : exact).push_back(setting);
  }
  if (!exact.empty()) return exact;
  if (!by_pattern.empty()) return by_pattern;
  return Error{Errc::not_found, concat("no option ", key, nearest_hint(key, keys))};
}

}  // namespace millrace::kernel::cli
