#include "kernel/cli/usage.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <millrace/utf8.h>

#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* verb : app.get_subcommands(nullptr)) {
    if (!verb->get_name().empty()) names.push_back(verb->get_name());  // else a group of options
  }
  return names;
}

// Each once: every verb has its --help.
void add_options(const CLI::App& app, std::vector<std::string>& names) {
  for (const auto* option : app.get_options(nullptr)) {
    for (const auto& name : option->get_lnames()) {
      if (auto whole = "--" + name; !contains(names, whole)) names.push_back(std::move(whole));
    }
  }
}

// Of a verb, and of what stands around it.
std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* around = &app; around != nullptr; around = around->get_parent()) {
    add_options(*around, names);
    for (const auto* group : around->get_subcommands(nullptr)) {
      if (group->get_name().empty()) add_options(*group, names);
    }
  }
  return names;
}

// A word that nobody takes.
std::string unexpected(const CLI::App& verb, const std::string& word) {
  if (word.starts_with('-')) {
    const auto options = options_of(verb);
    return concat("unknown option ", shown(word), nearest_hint(word, options), "; options are ",
                  joined(options));
  }
  const auto verbs = verbs_of(verb);
  if (verbs.empty()) return concat("\"", shown(word), "\" is one argument too many");
  return concat("unknown verb ", shown(word), nearest_hint(word, verbs), "; verbs are ",
                joined(verbs));
}

std::string what_is_wrong(const CLI::App& program, const CLI::App& verb,
                          const CLI::ParseError& error) {
  // Before what is missing: a verb that is misspelt is both.
  const auto words = program.remaining(true);
  const bool no_verb = !verbs_of(verb).empty();
  const auto is = [&error](CLI::ExitCodes code) {
    return error.get_exit_code() == static_cast<int>(code);
  };
  if (!words.empty() && (no_verb || is(CLI::ExitCodes::ExtrasError))) {
    return unexpected(verb, words.front());
  }
  if (no_verb && is(CLI::ExitCodes::RequiredError)) {
    return concat("expected a verb: ", joined(verbs_of(verb)));
  }
  std::string text = error.what();
  // Numbers are all that is converted.
  constexpr std::string_view not_converted = "Could not convert: ";
  constexpr std::string_view between = " = ";
  const auto value_at = text.find(between);
  if (text.starts_with(not_converted) && value_at != std::string::npos) {
    return concat(text.substr(not_converted.size(), value_at - not_converted.size()),
                  ": expected an integer, found \"",
                  shown(std::string_view(text).substr(value_at + between.size())), "\"");
  }
  // Of a group of options, as CLI11 has it: "Exactly 1 option from [--a,--b] is required and 2 were
  // given".
  constexpr std::string_view one_of_group = "Exactly 1 option from [";
  const auto group_end = text.find(']');
  if (text.starts_with(one_of_group) && group_end != std::string::npos) {
    std::string options;
    for (const char c : text.substr(one_of_group.size(), group_end - one_of_group.size())) {
      options += c;
      if (c == ',') options += ' ';
    }
    const bool several = text.contains(" were given");
    return concat("expected ", several ? "just " : "", "one of ", options);
  }
  return text;
}

}  // namespace

std::string usage_error(const CLI::App& program, const CLI::ParseError& error) {
  const auto* verb = &program;
  auto name = program.get_name();
  while (!verb->get_subcommands().empty()) {
    verb = verb->get_subcommands().front();
    name += ' ' + verb->get_name();
  }
  return concat(name, ": ", what_is_wrong(program, *verb, error), "\nSee ", name, " --help\n");
}

std::string not_empty(const std::string& value) {
  return value.empty() ? "an empty value is no name; give one" : "";
}

std::string not_blank(const std::string& value) {
  if (value.empty()) return not_empty(value);
  const bool blank = value.find_first_not_of(" \t\r\n") == std::string::npos;
  return blank ? "a value of spaces alone is no name; give one" : "";
}

void require_admin(const CLI::App& program, const CLI::App& verb) {
  if (program.count("--bootstrap") == 0 || verb.count("--admin") > 0) return;
  throw CLI::ValidationError(
      "--bootstrap", concat("millrace ", verb.get_name(),
                            " asks the admin API, which has an address of its own: name it with "
                            "--admin HOST:PORT, as listen of the broker's [transport.http] says"));
}

Check one_of(std::vector<std::string> words) {
  return [words = std::move(words)](const std::string& value) -> std::string {
    if (contains(words, value)) return {};
    const std::vector<std::string> front(words.begin(), words.end() - 1);
    return concat("expected ", joined(front), " or ", words.back(), ", found \"", shown(value),
                  "\"", nearest_hint(value, words));
  };
}

std::string check_whole_number(std::string_view value, std::int64_t min, std::int64_t max) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(value.begin(), value.end(), number);
  const bool whole = end == value.end() && failed != std::errc::invalid_argument;
  if (whole && failed == std::errc{} && number >= min && number <= max) return {};
  // The largest there are say nothing.
  const bool bounded = max != std::numeric_limits<std::int64_t>::max();
  const auto bounds = bounded ? concat(" from ", min, " to ", max) : concat(", at least ", min);
  return concat("expected an integer", bounds, ", found \"", shown(value), "\"");
}

std::string topic_name(const std::string& value) {
  constexpr std::size_t bytes_max = 249;
  constexpr std::string_view allowed =
      "allowed are a-z, A-Z, 0-9, '.', '_' and '-', at most 249 of them, and neither '.' nor '..'";
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  if (value.empty() || value == "." || value == "..") {
    return concat("\"", value, "\" is no topic's name: ", allowed);
  }
  if (value.size() > bytes_max) {
    return concat("a topic's name of ", value.size(), " bytes is too long: ", allowed);
  }
  const auto wrong = std::ranges::find_if_not(value, is_allowed);
  if (wrong == value.end()) return {};
  const auto at = static_cast<std::size_t>(wrong - value.begin());
  const auto character = first_code_point(std::string_view(value).substr(at));
  return concat("\"", shown(value), "\" is no topic's name: it has '",
                shown(std::string_view(value).substr(at, character.bytes)), "'; ", allowed);
}

void add_examples(CLI::App& verb, const std::vector<std::string>& lines) {
  std::string text = lines.size() == 1 ? "Example:" : "Examples:";
  for (const auto& line : lines) text += "\n  " + line;
  verb.footer(std::move(text));
}

}  // namespace millrace::kernel::cli
