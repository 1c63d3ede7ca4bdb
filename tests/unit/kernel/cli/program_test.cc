#include "kernel/cli/program.h"

#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel::cli {
namespace {

struct Program {
  Context context;
  Action action;
  std::unique_ptr<CLI::App> app = make_program(context, action);
};

// Those that are done, not those that only have others below them.
std::vector<const CLI::App*> leaves_below(const CLI::App& app) {
  std::vector<const CLI::App*> leaves;
  bool has_verbs = false;
  for (const auto* verb : app.get_subcommands(nullptr)) {
    if (verb->get_name().empty()) continue;  // a group of options
    has_verbs = true;
    std::ranges::copy(leaves_below(*verb), std::back_inserter(leaves));
  }
  if (!has_verbs) leaves.push_back(&app);
  return leaves;
}

std::string path_of(const CLI::App& verb) {
  if (verb.get_parent() == nullptr) return verb.get_name();
  return path_of(*verb.get_parent()) + " " + verb.get_name();
}

// The words of the tool in a line for a shell, each time that it is named: up to a pipe or a file.
std::vector<std::vector<std::string>> commands_in(const std::string& line) {
  std::vector<std::vector<std::string>> commands;
  std::istringstream text(line);
  bool ours = false;
  for (std::string word; text >> word;) {
    if (word == "|" || word == "<" || word == ">" || word == "#") ours = false;
    if (word == "millrace") {
      ours = true;
      commands.emplace_back();
      continue;
    }
    if (!ours) continue;
    if (word.starts_with('\'')) {
      for (std::string more; !word.ends_with('\'') && text >> more;) word += ' ' + more;
      word = word.substr(1, word.size() - 2);
    }
    commands.back().push_back(word);
  }
  return commands;
}

std::vector<std::string> examples_of(const CLI::App& verb) {
  std::vector<std::string> examples;
  std::istringstream footer(verb.get_footer());
  std::string line;
  std::getline(footer, line);
  if (!line.starts_with("Example")) return examples;
  while (std::getline(footer, line)) examples.push_back(line);
  return examples;
}

// Which verbs an example runs; those that do not parse fail.
std::vector<std::string> verbs_in(const std::string& example) {
  std::vector<std::string> verbs;
  for (auto& words : commands_in(example)) {
    Program tried;
    std::ranges::reverse(words);  // as CLI11 takes them
    try {
      tried.app->parse(words);
    } catch (const CLI::ParseError& error) {
      ADD_FAILURE() << example << ": " << error.what();
      continue;
    }
    EXPECT_TRUE(tried.action) << example;
    const CLI::App* chosen = tried.app.get();
    while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
    verbs.push_back(path_of(*chosen));
  }
  return verbs;
}

TEST(ProgramTest, EachVerbHasExamplesOfItselfThatParse) {
  const Program program;
  const auto leaves = leaves_below(*program.app);
  EXPECT_GE(leaves.size(), 20U);
  for (const auto* verb : leaves) {
    const auto path = path_of(*verb);
    const auto examples = examples_of(*verb);
    EXPECT_FALSE(examples.empty()) << path << " --help has no example";
    for (const auto& example : examples) {
      EXPECT_THAT(verbs_in(example), testing::Contains(path));
      // Where the package has its logs.
      EXPECT_FALSE(std::regex_search(example, std::regex("/var/lib/millrace(?!/data)"))) << example;
    }
  }
}

TEST(ProgramTest, EachVerbAndOptionSaysWhatItIsFor) {
  const Program program;
  for (const auto* verb : leaves_below(*program.app)) {
    EXPECT_FALSE(verb->get_description().empty()) << path_of(*verb);
    for (const auto* option : verb->get_options(nullptr)) {
      if (option->get_positional()) continue;  // its name does
      EXPECT_FALSE(option->get_description().empty())
          << path_of(*verb) << ' ' << option->get_name();
    }
  }
}

TEST(ProgramTest, WhatEachVerbPrintsForProgramsIsDocumented) {
  std::ifstream file(std::string(MILLRACE_GOLDEN_DIR) + "/../../packaging/doc/json.md");
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(document.empty());
  const Program program;
  for (const auto* verb : leaves_below(*program.app)) {
    const auto path = path_of(*verb).substr(std::string_view("millrace ").size());
    EXPECT_THAT(document, testing::HasSubstr("\n`" + path + "`"));
  }
}

TEST(ProgramTest, HelpTellsTheExitCodes) {
  const Program program;
  const auto help = program.app->help();
  for (const int code :
       {exit_code_of({Errc::not_found, ""}), exit_code_of({Errc::invalid_argument, ""}),
        exit_code_of({Errc::corrupt, ""}), exit_code_of({Errc::timed_out, ""})}) {
    EXPECT_THAT(help, testing::ContainsRegex(" " + std::to_string(code) + "  [a-z]"));
  }
  EXPECT_THAT(help, testing::HasSubstr(" 130  "));
  // It is of the program alone: a verb's help ends with its own examples.
  EXPECT_THAT(program.app->get_subcommand("topic")->help(),
              testing::Not(testing::HasSubstr("Exit codes")));
}

}  // namespace
}  // namespace millrace::kernel::cli
