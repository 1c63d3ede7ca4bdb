#include "kernel/cli/config_reference.h"

#include "kernel/config/config.h"
#include "kernel/config/kernel_options.h"
#include "kernel/config/option_value.h"
#include "kernel/config/text.h"
#include "kernel/host/library.h"
#include "kernel/host/plugin_files.h"
#include "kernel/partition/config_options.h"

namespace millrace::kernel::cli {

namespace {

// The table of millrace.toml that configures a plugin; codecs have none.
std::string table_of(std::string_view kind, const std::string& name) {
  if (kind == tables::coordination || kind == tables::storage) return std::string(kind);
  return concat(kind, ".", name);
}

std::vector<OptionTable> all_tables(const Context& context) {
  auto all = kernel_options();
  all.push_back({tables::defaults, broker_defaults()});
  for (auto& plugin : plugin_tables(context)) {
    all.push_back({std::move(plugin.table), plugin.options});
  }
  return all;
}

std::string default_text(const MillraceOption& option) {
  if (!option.default_value) return "none";
  return *option.default_value == '\0' ? "empty" : option.default_value;
}

std::string inherited_from(const TopicOption& topic) {
  std::vector<std::string> names;
  for (const auto& synonym : topic.synonyms) {
    if (synonym.name) names.emplace_back(synonym.name);
  }
  return names.empty() ? "no setting of the broker" : joined(names);
}

std::string explain_topic(const TopicOption& topic) {
  return concat(topic.option.name, ", of a topic: ", topic.option.help,
                "\n  value:    ", allowed(topic.option),
                "\n  default:  ", default_text(topic.option),
                "\n  inherits: ", inherited_from(topic), "\n");
}

std::string explain_broker(const BrokerOption& broker) {
  const auto* change = broker.has(config_dynamic) ? "while the broker runs, or in [defaults]"
                       : broker.has(config_fact)  ? "not under this name"
                                                  : "in [defaults]";
  return concat(broker.option.name, ", of a broker: ", broker.option.help,
                "\n  value:    ", allowed(broker.option),
                "\n  default:  ", default_text(broker.option), "\n  is set:   ", change, "\n");
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

Result<std::string> explain_setting(const Context& context, const std::string& key) {
  std::string text;
  if (const auto* topic = find_topic_option(key)) text += explain_topic(*topic);
  if (const auto* broker = find_broker_option(key)) text += explain_broker(*broker);
  if (!text.empty()) return text;
  return explain(all_tables(context), key);
}

}  // namespace millrace::kernel::cli
