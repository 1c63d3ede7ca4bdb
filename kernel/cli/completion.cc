#include "kernel/cli/completion.h"

#include <algorithm>
#include <optional>
#include <ranges>

#include <CLI/CLI.hpp>

#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

using enum ValueKind;

constexpr std::string_view codecs = "none gzip snappy lz4 zstd";

constexpr ArgumentRule rules[] = {
    {"", "--output", none, "table json"},
    {"topic create", "--config", topic_settings},
    {"topic describe", "NAME", topics},
    {"topic alter", "NAME", topics},
    {"topic trim", "NAME", topics},
    {"topic trim", "--before", none, "end"},
    {"topic delete", "NAME", topics},
    {"group", "NAME", groups},
    {"group reset", "--topic", topics},
    {"produce", "TOPIC", topics},
    {"produce", "--acks", none, "1 all"},
    {"produce", "--compression", none, codecs},
    {"consume", "TOPIC", topics},
    {"consume", "--from", none, "earliest latest"},
    {"bench", "--topic", topics},
    {"bench", "--acks", none, "1 all"},
    {"bench", "--codec", none, codecs},
    {"config", "--topic", topics},
    {"config", "--broker", brokers},
    {"config", "--group", groups},
    {"config get", "NAME", settings},
    {"config set", "SETTING", setting_values},
    {"config set", "--set", setting_values},
    {"config set", "--append", setting_values},
    {"config set", "--subtract", setting_values},
    {"config set", "--unset", settings},
    {"config diff", "--set", daemon_settings},
    {"config check", "--set", daemon_settings},
    {"config explain", "KEY", config_keys},
    {"cluster drain", "ID", brokers},
    {"plugin", "PLUGIN", plugins},
    {"plugin new", "--kind", none, "operators compression"},
    {"stream", "NAME", streams},
    {"stream replace", "STEP", stream_steps},
    {"aggregate", "NAME", aggregates},
    {"doctor", "--set", daemon_settings},
};
// Of millraced, which has no verbs.
constexpr ArgumentRule daemon_rules[] = {{"", "--set", daemon_settings}};

struct KindOfType {
  std::string_view type;
  ValueKind kind;
};
// For all arguments that are written so.
constexpr KindOfType kinds_of_types[] = {
    {"FILE", files}, {"PATH", files}, {"PLUGIN_FILE", files}, {"FOLDER", folders}};

std::string path_of(const CLI::App& verb) {
  if (verb.get_parent() == nullptr) return "";
  const auto above = path_of(*verb.get_parent());
  return above.empty() ? verb.get_name() : concat(above, " ", verb.get_name());
}

// Of options, which CLI11 has as an App without a name.
bool is_group(const CLI::App* app) { return app->get_name().empty(); }

bool is_shown(const CLI::Option& option) { return !option.get_group().empty(); }

bool takes_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }

bool repeats(const CLI::Option& option) {
  return option.get_items_expected_max() >= CLI::detail::expected_max_vector_size ||
         option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
}

// Of `app` and of its groups, which are no verbs.
std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  auto options = app.get_options();
  for (const auto* group : app.get_subcommands(is_group)) {
    std::ranges::copy(options_of(*group), std::back_inserter(options));
  }
  return options;
}

const CLI::App* verb_of(const CLI::App& app, std::string_view name) {
  for (const auto* verb : app.get_subcommands(nullptr)) {
    const bool called_so = verb->get_name() == name || contains(verb->get_aliases(), name);
    if (!is_group(verb) && called_so) return verb;
  }
  return nullptr;
}

std::string name_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  return option.get_lnames().empty() ? "-" + option.get_snames().front()
                                     : "--" + option.get_lnames().front();
}

// An argument and the verb that has it: its own, or one around it.
struct Argument {
  const CLI::App* verb = nullptr;
  const CLI::Option* option = nullptr;
};

// "--output", "-o".
std::optional<Argument> find_option(const CLI::App& verb, std::string_view name) {
  for (const auto* around = &verb; around != nullptr; around = around->get_parent()) {
    for (const auto* option : options_of(*around)) {
      if (!option->nonpositional()) continue;
      const bool found = name.starts_with("--")
                             ? contains(option->get_lnames(), name.substr(2))
                             : name.size() == 2 && contains(option->get_snames(), name.substr(1));
      if (found) return Argument{around, option};
    }
  }
  return std::nullopt;
}

std::optional<Argument> positional_at(const CLI::App& verb, std::size_t at) {
  for (const auto* option : verb.get_options()) {
    if (!option->get_positional()) continue;
    if (at == 0 || repeats(*option)) return Argument{&verb, option};
    --at;
  }
  return std::nullopt;
}

// Where the cursor is.
struct Place {
  const CLI::App* verb;
  TypedWords typed;
  std::optional<Argument> value_of;  ///< an option whose value stands at the cursor
  bool options_over = false;         ///< after "--"
};

bool is_option(std::string_view word) { return word.size() > 1 && word.starts_with('-'); }

void take_option(Place& place, std::string_view word) {
  const auto equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
  const auto name = word.starts_with("--") ? word.substr(0, equals) : word.substr(0, 2);
  const auto found = find_option(*place.verb, name);
  if (!found) return;
  auto& values = place.typed.options[name_of(*found->option)];
  if (!takes_value(*found->option)) return;
  if (equals != std::string_view::npos) {
    values.emplace_back(word.substr(equals + 1));
  } else if (name.size() < word.size()) {
    values.emplace_back(word.substr(name.size()));
  } else {
    place.value_of = found;
  }
}

void take(Place& place, const std::string& word) {
  if (place.value_of) {
    place.typed.options[name_of(*place.value_of->option)].push_back(word);
    place.value_of.reset();
  } else if (word == "--" && !place.options_over) {
    place.options_over = true;
  } else if (is_option(word) && !place.options_over) {
    take_option(place, word);
  } else if (const auto* verb = verb_of(*place.verb, word)) {
    place.verb = verb;
    place.typed.positionals.clear();
  } else {
    place.typed.positionals.push_back(word);
  }
}

const ArgumentRule* rule_of(const Argument& argument) {
  const auto* program = argument.verb;
  while (program->get_parent() != nullptr) program = program->get_parent();
  const bool has_verbs = !program->get_subcommands(nullptr).empty();
  const std::span<const ArgumentRule> table =
      has_verbs ? std::span<const ArgumentRule>(rules) : daemon_rules;
  const auto verb = path_of(*argument.verb);
  const auto name = name_of(*argument.option);
  const auto found = std::ranges::find_if(table, [&](const ArgumentRule& rule) {
    const bool here =
        verb == rule.verb || (!rule.verb.empty() && verb.starts_with(concat(rule.verb, " ")));
    return here && rule.argument == name;
  });
  return found == table.end() ? nullptr : &*found;
}

ValueKind kind_by_type(const CLI::Option& option) {
  const auto type = option.get_positional() ? option.get_name(true) : option.get_type_name();
  const auto* const found = std::ranges::find(kinds_of_types, type, &KindOfType::type);
  return found == std::ranges::end(kinds_of_types) ? none : found->kind;
}

void add_values(Completions& completions, const Argument& argument, const Place& place,
                const std::string& before, std::string_view prefix, const ValueSource& source) {
  const auto* rule = rule_of(argument);
  const auto kind = rule != nullptr ? rule->kind : kind_by_type(*argument.option);
  if (rule != nullptr) {
    for (const auto value : std::views::split(rule->values, ' ')) {
      if (value.empty()) continue;
      completions.candidates.push_back({before + std::string(value.begin(), value.end()), ""});
    }
  }
  if (kind == files || kind == folders) {
    completions.names = kind;
  } else if (kind != none) {
    for (auto& candidate : source(kind, place.typed, prefix)) {
      candidate.value = before + candidate.value;
      completions.candidates.push_back(std::move(candidate));
    }
    if (kind == plugins) completions.names = files;
  }
}

void add_options(Completions& completions, const Place& place) {
  for (const auto* around = place.verb; around != nullptr; around = around->get_parent()) {
    for (const auto* option : options_of(*around)) {
      if (!option->nonpositional() || !is_shown(*option) || option->get_lnames().empty()) continue;
      const auto name = name_of(*option);
      if (place.typed.options.contains(name) && !repeats(*option)) continue;
      const bool there = std::ranges::find(completions.candidates, name, &Candidate::value) !=
                         completions.candidates.end();
      if (!there) completions.candidates.push_back({name, option->get_description()});
    }
  }
}

void add_verbs(Completions& completions, const CLI::App& app) {
  for (const auto* verb : app.get_subcommands(nullptr)) {
    if (is_group(verb) || verb->get_group().empty()) continue;
    completions.candidates.push_back({verb->get_name(), verb->get_description()});
  }
}

// "--output=js": the value of an option in the same word.
bool add_values_of_word(Completions& completions, const Place& place, std::string_view word,
                        const ValueSource& source) {
  const auto equals = word.find('=');
  if (!word.starts_with("--") || equals == std::string_view::npos) return false;
  const auto found = find_option(*place.verb, word.substr(0, equals));
  if (found && takes_value(*found->option)) {
    add_values(completions, *found, place, std::string(word.substr(0, equals + 1)),
               word.substr(equals + 1), source);
    completions.names = none;  // the shell would look for a name that begins with the option
  }
  return true;
}

void add_all(Completions& completions, const Place& place, std::string_view word,
             const ValueSource& source) {
  if (place.value_of) {
    add_values(completions, *place.value_of, place, "", word, source);
    return;
  }
  if (word.starts_with('-') && !place.options_over) {
    if (!add_values_of_word(completions, place, word, source)) add_options(completions, place);
    return;
  }
  add_verbs(completions, *place.verb);
  const auto positional = positional_at(*place.verb, place.typed.positionals.size());
  if (positional) {
    add_values(completions, *positional, place, "", word, source);
  } else if (completions.candidates.empty() && !place.options_over) {
    add_options(completions, place);
  }
}

}  // namespace

std::string_view TypedWords::option(std::string_view name) const {
  const auto found = options.find(name);
  return found == options.end() || found->second.empty() ? std::string_view()
                                                         : found->second.back();
}

std::span<const ArgumentRule> argument_rules() noexcept { return rules; }

Completions complete(const CLI::App& program, std::span<const std::string> words,
                     const ValueSource& source) {
  if (words.empty()) return {};
  Place place{.verb = &program, .typed = {}, .value_of = {}};
  for (const auto& word : words.first(words.size() - 1)) take(place, word);
  Completions completions;
  add_all(completions, place, words.back(), source);
  std::erase_if(completions.candidates, [&words](const Candidate& candidate) {
    return !candidate.value.starts_with(words.back());
  });
  return completions;
}

}  // namespace millrace::kernel::cli
