#include "kernel/cli/reference_pages.h"

#include <iostream>

#include <CLI/CLI.hpp>

#include "kernel/cli/program.h"
#include "kernel/cli/reference.h"
#include "kernel/cli/reference_config.h"
#include "kernel/config/text.h"
#include "kernel/daemon/arguments_tree.h"

namespace millrace::kernel::cli {

namespace {

constexpr int tool_section = 1;
constexpr int file_section = 5;
constexpr int daemon_section = 8;
constexpr const char* daemon_page = "millraced";
constexpr const char* file_page = "millrace.toml";

}  // namespace

std::vector<PageName> manual_pages() {
  Context context;
  Action action;
  std::vector<PageName> pages;
  for (auto& name : page_names(*make_program(context, action))) {
    pages.push_back({std::move(name), tool_section});
  }
  pages.push_back({file_page, file_section});
  pages.push_back({daemon_page, daemon_section});
  return pages;
}

Result<std::string> manual_page(std::string_view name) {
  Context context;
  Action action;
  if (name == file_page) return configuration_page(context);
  if (name == daemon_page) {
    Arguments arguments;
    return program_page(*make_daemon(arguments, MILLRACE_VERSION), daemon_section,
                        {"millrace(1)", "millrace.toml(5)"});
  }
  const auto program = make_program(context, action);
  if (name == program->get_name()) {
    return program_page(*program, tool_section, {"millraced(8)", "millrace.toml(5)"});
  }
  for (const auto* verb : program->get_subcommands(nullptr)) {
    if (name == concat(program->get_name(), "-", verb->get_name())) {
      return verb_page(*program, *verb);
    }
  }
  return Error{Errc::not_found, concat("no manual page ", name)};
}

Result<> print_manual(std::string_view page) {
  if (!page.empty()) {
    MR_TRY(const auto text, manual_page(page));
    std::cout << text;
    return {};
  }
  for (const auto& [name, section] : manual_pages()) std::cout << name << ' ' << section << '\n';
  return {};
}

}  // namespace millrace::kernel::cli
