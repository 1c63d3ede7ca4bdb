#include "kernel/cli/reference_config.h"

#include <vector>

#include "kernel/broker/group_options.h"
#include "kernel/cli/config_reference.h"
#include "kernel/cli/reference.h"
#include "kernel/config/document.h"
#include "kernel/config/kernel_options.h"
#include "kernel/config/option_value.h"
#include "kernel/config/text.h"
#include "kernel/partition/config_options.h"

namespace millrace::kernel::cli {

namespace {

constexpr const char* introduction =
    "# millrace.toml(5): configuration of the Millrace broker\n\n"
    "## SYNOPSIS\n\n/etc/millrace/millrace.toml, /etc/millrace/conf.d/\\*.toml\n\n"
    "## DESCRIPTION\n\n"
    "What `millraced --config FILE` reads, in TOML: FILE, then the files *conf.d/\\*.toml* beside "
    "it in the order of their names, then each `--set KEY=VALUE` of the command line. What comes "
    "later wins. A key that nobody declares, a value of another type or out of its bounds is "
    "refused, with file, line and column; `millraced --config FILE --check` tells of all of them "
    "at once and starts nothing.\n\n"
    "Below stands each option with what it may be and its default. Those that are marked "
    "*reloadable* are taken over by a running broker at SIGHUP (`systemctl reload millrace`), "
    "as are streams and transports that are new or gone, and codecs that are new; topics that are "
    "missing are made. The others count from the next start, and the log names those that differ."
    "\n\n"
    "`millrace config explain KEY` tells the same of one key.\n\n";

constexpr const char* of_plugins =
    "## OPTIONS OF PLUGINS\n\n"
    "A table for each of the plugins that come with Millrace; those of others are told by "
    "`millrace plugin show KIND/NAME`. Options of an operator that a stream runs stand in the "
    "stream's step, beside *operator*.\n\n";

constexpr const char* of_brokers =
    "## SETTINGS OF BROKERS\n\n"
    "Under Kafka's names. In *millrace.toml* they stand in the table **\\[defaults\\]**, with the "
    "name in quotes: `\"num.partitions\" = 3`. Those that change *while the broker runs* are also "
    "set by `millrace config set --broker ID` or `--broker-default`, and by Kafka's tools.\n\n";

constexpr const char* of_topics =
    "## SETTINGS OF TOPICS\n\n"
    "Given when a topic is made, `millrace topic create NAME --config KEY=VALUE`, in "
    "**\\[topic.NAME\\]**, or "
    "changed while the broker runs, `millrace config set --topic NAME KEY=VALUE`. What is "
    "not set for the topic comes from the broker: from its setting of the same name in "
    "**\\[defaults\\]**, or from the first that is set of those it inherits.\n\n";

constexpr const char* of_groups =
    "## SETTINGS OF GROUPS\n\n"
    "Of consumer groups of the protocol of KIP-848, changed while the broker runs: `millrace "
    "config set --group NAME KEY=VALUE`. What is not set for the group is the "
    "broker's.\n\n";

constexpr const char* see_also =
    "## SEE ALSO\n\n"
    "[**millraced**](millraced.md)(8), [**millrace-config**](millrace-config.md)(1), "
    "[**millrace-plugin**](millrace-plugin.md)(1)\n";

// One name, what it means, and lines about its value.
std::string entry(std::string_view name, std::string_view help,
                  const std::vector<std::string>& about) {
  auto text = concat("**", markdown_text(name), "**\n\n:   ", markdown_text(help));
  for (const auto& line : about) text += concat("  \n    ", line);
  return text + "\n\n";
}

std::string default_text(const MillraceOption& option) {
  if (option.default_value == nullptr) return "no default";
  if (*option.default_value == '\0') {
    return option.type == MILLRACE_OPTION_TEXTS ? "default: an empty list"
                                                : "default: an empty text";
  }
  return concat("default: ", markdown_text(option.default_value));
}

std::string value_text(const MillraceOption& option) {
  auto text = concat(markdown_text(allowed(option)), "; ");
  const bool required = (option.flags & MILLRACE_OPTION_REQUIRED) != 0;
  text += required ? "required" : default_text(option);
  if ((option.flags & MILLRACE_OPTION_RELOADABLE) != 0) text += "; *reloadable*";
  if ((option.flags & MILLRACE_OPTION_SECRET) != 0) text += "; never printed";
  return text;
}

std::string options_text(const MillraceOption* options) {
  std::string text;
  for (; options->name != nullptr; ++options) {
    text += entry(quoted_key(options->name), options->help, {value_text(*options)});
  }
  return text;
}

std::string tables_text() {
  std::string text = "## TABLES\n\n";
  for (const auto& [table, options] : kernel_options()) {
    text += concat("### \\[", markdown_text(table), "\\]\n\n", options_text(options));
  }
  return text;
}

std::string plugins_text(const Context& context) {
  std::string text = of_plugins;
  for (const auto& plugin : plugin_tables(context)) {
    if (plugin.options->name == nullptr) continue;
    const auto table = plugin.of_steps ? "stream.NAME.steps" : plugin.table;
    text += concat("### \\[", markdown_text(table), "\\], plugin ", markdown_text(plugin.plugin),
                   "\n\n");
    if (!plugin.summary.empty()) text += markdown_text(plugin.summary) + "\n\n";
    text += options_text(plugin.options);
  }
  return text;
}

std::string brokers_text() {
  std::string text = of_brokers;
  for (const auto& setting : broker_config_options()) {
    auto value = value_text(setting.option);
    if (setting.has(config_fact)) {
      value += "; told, not set under this name";
    } else if (setting.has(config_dynamic)) {
      value += "; changes *while the broker runs*";
    }
    if (setting.weaker != nullptr) value += concat("; else ", markdown_text(setting.weaker));
    text += entry(setting.option.name, setting.option.help, {value});
  }
  return text;
}

std::string topics_text() {
  std::string text = of_topics;
  for (const auto& setting : topic_options()) {
    std::vector<std::string> inherited;
    for (const auto& synonym : setting.synonyms) {
      if (synonym.name != nullptr) inherited.push_back(markdown_text(synonym.name));
    }
    std::vector<std::string> about{value_text(setting.option)};
    if (!inherited.empty()) about.push_back("inherits " + joined(inherited));
    text += entry(setting.option.name, setting.option.help, about);
  }
  return text;
}

std::string groups_text() {
  std::string text = of_groups;
  for (const auto& setting : group_options()) {
    text += entry(setting.option.name, setting.option.help,
                  {markdown_text(allowed(setting.option)),
                   concat("inherits ", markdown_text(setting.broker))});
  }
  return text;
}

}  // namespace

std::string configuration_page(const Context& context) {
  return introduction + tables_text() + plugins_text(context) + topics_text() + brokers_text() +
         groups_text() + see_also;
}

}  // namespace millrace::kernel::cli
