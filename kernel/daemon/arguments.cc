#include "kernel/daemon/arguments.h"

#include <iostream>

#include <CLI/CLI.hpp>

#include "kernel/cli/usage.h"
#include "kernel/daemon/arguments_tree.h"

namespace millrace::kernel {

std::variant<Arguments, Exit> parse_arguments(int argc, char** argv) {
  Arguments arguments;
  const auto app = make_daemon(arguments, MILLRACE_VERSION);
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for = error.get_exit_code() == 0;  // --help and --version
    if (!asked_for) {
      std::cerr << cli::usage_error(*app, error);
      return Exit::usage;
    }
    app->exit(error, std::cout, std::cerr);
    return Exit::clean;
  }
  return arguments;
}

}  // namespace millrace::kernel
