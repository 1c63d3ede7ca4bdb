#include "kernel/cli/reference.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include <CLI/CLI.hpp>

#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

constexpr int tool_section = 1;

std::string bold(std::string_view text) { return concat("**", markdown_text(text), "**"); }
std::string emphasised(std::string_view text) { return concat("*", markdown_text(text), "*"); }

bool is_group(const CLI::App& app) { return app.get_name().empty(); }

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !is_group(*verb); });
}

std::vector<const CLI::App*> groups_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* group) { return is_group(*group); });
}

// Those that can be seen: the shape of a verb and the words of its arguments.
std::vector<const CLI::Option*> options_of(const CLI::App& app, bool positional) {
  return app.get_options([positional, help = app.get_help_ptr()](const CLI::Option* option) {
    return option->get_positional() == positional && !option->get_group().empty() && option != help;
  });
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

bool repeats(const CLI::Option& option) {
  return option.get_items_expected_max() >= CLI::detail::expected_max_vector_size ||
         option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
}

// CLI11 has the bounds of a number behind the type: "INT:INT in [1 - 1000]".
struct Type {
  std::string name;
  std::string bounds;  // "in [1 - 1000]"
};
Type type_of(const CLI::Option& option) {
  auto name = option.get_type_name();
  const auto bounds = name.find(" in [");
  if (bounds == std::string::npos) return {std::move(name), ""};
  return {name.substr(0, name.find(':')), name.substr(bounds + 1)};
}

// "**-o**, **--output** *FORMAT*"
std::string term_of(const CLI::Option& option) {
  if (option.get_positional()) {
    return emphasised(option.get_name(true)) + (repeats(option) ? "..." : "");
  }
  std::vector<std::string> names;
  for (const auto& name : option.get_snames()) names.push_back(bold("-" + name));
  for (const auto& name : option.get_lnames()) names.push_back(bold("--" + name));
  return joined(names) + (takes_value(option) ? " " + emphasised(type_of(option).name) : "");
}

std::string meaning_of(const CLI::Option& option) {
  std::vector<std::string> parts;
  const auto& help = option.get_description();
  if (!help.empty()) parts.push_back(help);
  if (auto bounds = type_of(option).bounds; !bounds.empty()) parts.push_back(std::move(bounds));
  if (const auto fallback = option.get_default_str(); !fallback.empty() && takes_value(option)) {
    parts.push_back("default: " + fallback);
  }
  if (!option.get_positional() && option.get_required()) parts.emplace_back("required");
  if (!option.get_positional() && repeats(option) && help.find("repeated") == std::string::npos) {
    parts.emplace_back("may be repeated");
  }
  return joined(parts, "; ");
}

std::string definition(std::string_view term, std::string_view meaning) {
  return concat(term, "\n\n:   ", meaning, "\n\n");
}

std::string definitions(const CLI::App& app) {
  std::string text;
  for (const bool positional : {true, false}) {
    for (const auto* option : options_of(app, positional)) {
      const auto meaning = markdown_text(meaning_of(*option));
      if (!meaning.empty()) text += definition(term_of(*option), meaning);
    }
  }
  for (const auto* group : groups_of(app)) {
    const bool one = group->get_require_option_min() == 1 && group->get_require_option_max() == 1;
    if (one) text += "Exactly one of these:\n\n";
    text += definitions(*group);
  }
  return text;
}

std::string path_of(const CLI::App& verb) {
  if (verb.get_parent() == nullptr) return verb.get_name();
  return path_of(*verb.get_parent()) + " " + verb.get_name();
}

// "**millrace topic create** *NAME* [*OPTION*...]"
std::string usage_of(const CLI::App& verb) {
  auto usage = bold(path_of(verb));
  bool has_more = false;
  for (const auto* option : options_of(verb, false)) {
    if (option->get_required()) {
      usage += " " + term_of(*option);
    } else {
      has_more = true;
    }
  }
  for (const auto* group : groups_of(verb)) {
    std::vector<std::string> terms;
    for (const auto* option : options_of(*group, false)) terms.push_back(term_of(*option));
    if (group->get_require_option_min() == 1) {
      usage += concat(" (", joined(terms, " | "), ")");
    } else {
      has_more = true;
    }
  }
  if (has_more) usage += " \\[*OPTION*...\\]";
  for (const auto* option : options_of(verb, true)) {
    const auto term = term_of(*option);
    usage += option->get_required() ? " " + term : concat(" \\[", term, "\\]");
  }
  return usage;
}

std::vector<const CLI::App*> leaves_of(const CLI::App& verb) {
  const auto verbs = verbs_of(verb);
  if (verbs.empty()) return {&verb};
  std::vector<const CLI::App*> leaves;
  for (const auto* below : verbs) std::ranges::copy(leaves_of(*below), std::back_inserter(leaves));
  return leaves;
}

// What a footer says under `title`: its other lines, without their indent.
std::vector<std::string> lines_under(std::string_view title, const CLI::App& app) {
  std::vector<std::string> lines;
  std::istringstream footer(app.get_footer());
  std::string line;
  if (!std::getline(footer, line) || !line.starts_with(title)) return lines;
  while (std::getline(footer, line)) {
    line.erase(0, line.find_first_not_of(' '));
    lines.push_back(line);
  }
  return lines;
}

std::string examples_text(const std::vector<std::string>& lines) {
  return lines.empty() ? "" : concat("## EXAMPLES\n\n```sh\n", joined(lines, "\n"), "\n```\n\n");
}

// All of a verb's.
std::string examples_of(const CLI::App& verb) {
  std::vector<std::string> lines;
  for (const auto* leaf : leaves_of(verb)) {
    std::ranges::move(lines_under("Example", *leaf), std::back_inserter(lines));
  }
  return examples_text(lines);
}

// The first of each verb.
std::string first_examples_of(const CLI::App& program) {
  std::vector<std::string> lines;
  for (const auto* verb : verbs_of(program)) {
    const auto all = lines_under("Example", *leaves_of(*verb).front());
    if (!all.empty()) lines.push_back(all.front());
  }
  return examples_text(lines);
}

std::string exit_status_of(const CLI::App& program) {
  std::string text;
  for (const auto& line : lines_under("Exit codes", program)) {
    const auto end = line.find(' ');
    const auto meaning = line.find_first_not_of(' ', end);
    if (meaning == std::string::npos) continue;
    text += definition(bold(line.substr(0, end)), markdown_text(line.substr(meaning)));
  }
  return text.empty() ? text : "## EXIT STATUS\n\n" + text;
}

std::string title_of(const CLI::App& app, std::string_view page, int section) {
  // A first sentence, or all of it; without its stop.
  auto about = app.get_description();
  about = about.substr(0, about.find(". "));
  if (about.ends_with('.')) about.pop_back();
  return concat("# ", page, "(", section, "): ", about, "\n\n");
}

std::string link(std::string_view page, int section) {
  return concat("[", bold(page), "](", page, ".md)(", section, ")");
}

// "millraced(8)" as a link.
std::string link(std::string_view reference) {
  const auto open = reference.find('(');
  const auto page = reference.substr(0, open);
  return concat("[", bold(page), "](", page, ".md)", reference.substr(open));
}

std::string page_of(const CLI::App& program, const CLI::App& verb) {
  return program.get_name() + "-" + verb.get_name();
}

std::string usages_of(const CLI::App& verb) {
  std::vector<std::string> usages;
  for (const auto* leaf : leaves_of(verb)) usages.push_back(usage_of(*leaf));
  return joined(usages, "\n\n") + "\n\n";
}

std::string sentence(std::string text) {
  if (text.empty()) return text;
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  if (!text.ends_with('.')) text += '.';
  return markdown_text(text);
}

}  // namespace

std::string markdown_text(std::string_view text) {
  constexpr std::string_view marks = "\\`*_[]<>&~^|#";
  std::string escaped;
  for (const char c : text) {
    if (contains(marks, c)) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::vector<std::string> page_names(const CLI::App& program) {
  std::vector<std::string> names{program.get_name()};
  for (const auto* verb : verbs_of(program)) names.push_back(page_of(program, *verb));
  return names;
}

std::string program_page(const CLI::App& program, int section,
                         const std::vector<std::string>& others) {
  const auto verbs = verbs_of(program);
  auto text = title_of(program, program.get_name(), section);
  text += concat("## SYNOPSIS\n\n", bold(program.get_name()), " \\[*OPTION*...\\]",
                 verbs.empty() ? "" : " *VERB* ...", "\n\n## DESCRIPTION\n\n",
                 sentence(program.get_description()), "\n\n");
  if (!verbs.empty()) {
    text += "## VERBS\n\n";
    for (const auto* verb : verbs) {
      text += definition(link(page_of(program, *verb), tool_section),
                         markdown_text(verb->get_description()));
    }
  }
  text += "## OPTIONS\n\n" + definitions(program) +
          definition(bold("-h") + ", " + bold("--help"), "print a short help and exit");
  text += first_examples_of(program) + exit_status_of(program);
  std::vector<std::string> links;
  for (const auto& other : others) links.push_back(link(other));
  return text + "## SEE ALSO\n\n" + joined(links) + "\n";
}

std::string verb_page(const CLI::App& program, const CLI::App& verb) {
  auto text = title_of(verb, page_of(program, verb), tool_section);
  text += "## SYNOPSIS\n\n" + usages_of(verb) + "## DESCRIPTION\n\n";
  const auto leaves = leaves_of(verb);
  if (leaves.size() == 1 && leaves.front() == &verb) {
    text += sentence(verb.get_description()) + "\n\n## OPTIONS\n\n" + definitions(verb);
  } else {
    for (const auto* leaf : leaves) {
      text += concat("### ", markdown_text(path_of(*leaf)), "\n\n",
                     sentence(leaf->get_description()), "\n\n", definitions(*leaf));
    }
    text += concat("## OPTIONS\n\n", definitions(verb));
  }
  text += definitions(program);
  text += examples_of(verb);
  text += "## EXIT STATUS\n\n0 when it is done; " + link(program.get_name(), tool_section) +
          " tells the others.\n\n";
  return text + "## SEE ALSO\n\n" + link(program.get_name(), tool_section) + "\n";
}

}  // namespace millrace::kernel::cli
