// The reference of options, made from their declarations.

#include "kernel/config/config.h"
#include "kernel/config/document.h"
#include "kernel/config/kernel_options.h"
#include "kernel/config/option_value.h"
#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

constexpr std::size_t name_column = 16;

std::string key_of(const OptionTable& table, const MillraceOption& option) {
  return table.table + '.' + quoted_key(option.name);
}

std::string default_text(const MillraceOption& option) {
  if (option.default_value == nullptr) return "none";
  return option.type == MILLRACE_OPTION_TEXT ? concat("\"", option.default_value, "\"")
         : option.type == MILLRACE_OPTION_TEXTS && *option.default_value == '\0'
             ? "an empty list"
             : option.default_value;
}

std::string notes(const MillraceOption& option) {
  std::vector<std::string> all;
  if ((option.flags & MILLRACE_OPTION_REQUIRED) != 0) all.emplace_back("required");
  if ((option.flags & MILLRACE_OPTION_RELOADABLE) != 0) all.emplace_back("reloadable");
  if ((option.flags & MILLRACE_OPTION_SECRET) != 0) all.emplace_back("secret");
  return joined(all);
}

}  // namespace

std::vector<OptionTable> kernel_options() {
  return {{tables::broker, broker_options()},
          {tables::log, log_options()},
          {"log.levels", log_level_options()},
          {tables::plugins, plugins_options()},
          {tables::compression, compression_options()},
          {tables::coordination, coordination_options()},
          {tables::storage, storage_options()},
          {tables::operators, operators_options()},
          {tables::cluster, cluster_options()},
          {"transport.NAME", transport_options()},
          {"stream.NAME", stream_options()},
          {"stream.NAME.steps", stream_step_options()},
          {"topic.NAME", topic_table_options()}};
}

Result<std::string> explain(const std::vector<OptionTable>& option_tables, std::string_view key) {
  std::vector<std::string> keys;
  for (const auto& table : option_tables) {
    for (const auto* option = table.options; option->name != nullptr; ++option) {
      keys.push_back(key_of(table, *option));
      if (keys.back() != key) continue;
      auto text = concat(key, ": ", option->help, "\n  value:   ", allowed(*option),
                         "\n  default: ", default_text(*option), "\n");
      if (const auto marks = notes(*option); !marks.empty()) {
        text += concat("  notes:   ", marks, "\n");
      }
      return text;
    }
  }
  return Error{Errc::not_found, concat("no option ", key, nearest_hint(key, keys))};
}

std::string describe(const std::vector<OptionTable>& option_tables) {
  std::string text;
  for (const auto& table : option_tables) {
    text += concat("[", table.table, "]\n");
    for (const auto* option = table.options; option->name != nullptr; ++option) {
      auto name = quoted_key(option->name);
      name.resize(std::max(name.size(), name_column), ' ');
      const auto below = std::string(name.size() + 3, ' ');
      text += concat("  ", name, " ", option->help, "\n", below, allowed(*option),
                     "; default: ", default_text(*option), "\n");
    }
  }
  return text;
}

}  // namespace millrace::kernel
