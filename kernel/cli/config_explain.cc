// millrace config explain: what a key means, without a broker.
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "kernel/cli/config_reference.h"
#include "kernel/cli/config_verbs.h"
#include "kernel/cli/output.h"
#include "kernel/cli/usage.h"
#include "kernel/config/option_value.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

std::string default_text(const MillraceOption& option) {
  if (option.default_value == nullptr) return "none";
  if (*option.default_value != '\0') return option.default_value;
  return option.type == MILLRACE_OPTION_TEXTS ? "an empty list" : "an empty text";
}

std::vector<std::string> notes_of(const MillraceOption& option) {
  std::vector<std::string> notes;
  if ((option.flags & MILLRACE_OPTION_REQUIRED) != 0) notes.emplace_back("required");
  if ((option.flags & MILLRACE_OPTION_RELOADABLE) != 0) notes.emplace_back("reloadable");
  if ((option.flags & MILLRACE_OPTION_SECRET) != 0) notes.emplace_back("secret");
  return notes;
}

void print_text(const ExplainedSetting& setting) {
  static constexpr std::size_t label_columns = 10;
  const auto line = [](std::string label, const std::string& text) {
    label += ':';
    label.resize(std::max(label.size(), label_columns), ' ');
    std::cout << "  " << label << text << '\n';
  };
  const auto& option = *setting.option;
  std::cout << setting.key << ", of " << setting.of << ": " << option.help << '\n';
  line("value", allowed(option));
  line("default", default_text(option));
  for (const auto& [label, text] : setting.more) line(label, text);
  if (const auto notes = notes_of(option); !notes.empty()) line("notes", joined(notes));
}

json::object object_of(const ExplainedSetting& setting) {
  const auto& option = *setting.option;
  json::object more;
  for (const auto& [label, text] : setting.more) more[label] = text;
  json::array notes;
  for (const auto& note : notes_of(option)) notes.emplace_back(note);
  return {{"key", setting.key},
          {"of", setting.of},
          {"meaning", option.help},
          {"value", allowed(option)},
          {"default", option.default_value == nullptr ? json::value(nullptr)
                                                      : json::value(option.default_value)},
          {"unit", option.unit == nullptr ? json::value(nullptr) : json::value(option.unit)},
          {"more", std::move(more)},
          {"notes", std::move(notes)}};
}

void print(const std::vector<ExplainedSetting>& settings, const Context& context, bool whole) {
  if (context.output == OutputFormat::json) {
    json::array list;
    for (const auto& setting : settings) list.emplace_back(object_of(setting));
    print_json(json::object{{"settings", std::move(list)}});
  } else if (whole) {
    for (const auto& setting : settings) print_text(setting);
  } else {
    Table table({"KEY", "OF", "DEFAULT", "MEANING"});
    for (const auto& setting : settings) {
      table.add({setting.key, setting.of, default_text(*setting.option), setting.option->help});
    }
    table.print();
  }
}

}  // namespace

void add_config_explain_verb(CLI::App& parent, Context& context, Action& action) {
  auto* verb = parent.add_subcommand("explain", "tell what a setting means, or list all");
  const auto key = std::make_shared<std::string>();
  verb->add_option("KEY", *key,
                   "as in millrace.toml, or Kafka's name of a setting; without: all there are")
      ->check(not_empty);
  add_examples(*verb, {"millrace config explain broker.data",
                       "millrace config explain retention.ms", "millrace config explain"});
  verb->callback([&context, &action, key] {
    action = [&context, key]() -> Result<> {
      if (key->empty()) {
        print(all_settings(context), context, false);
        return {};
      }
      MR_TRY(const auto settings, explain_setting(context, *key));
      print(settings, context, true);
      return {};
    };
  });
}

}  // namespace millrace::kernel::cli
