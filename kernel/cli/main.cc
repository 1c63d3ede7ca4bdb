// millrace: the command line tool. One file per verb; it speaks the Kafka protocol, so it works
// with any broker that does. Streams and aggregates are Millrace's own: for them it asks the admin
// API.
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <optional>
#include <span>
#include <sstream>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <millrace/utf8.h>

#include "kernel/cli/completion_values.h"
#include "kernel/cli/program.h"
#include "kernel/cli/reference_pages.h"
#include "kernel/cli/standard_output.h"
#include "kernel/cli/terminal.h"
#include "kernel/cli/usage.h"
#include "kernel/host/trial.h"

namespace millrace::kernel::cli {

namespace {

constexpr int usage_is_wrong = 64;
constexpr int program_failed = 70;
constexpr int output_failed = 74;

// Of a message that repeats something very long: how it begins and how it ends.
std::string bounded(std::string_view text) {
  constexpr std::size_t bytes_max = 4096;
  constexpr std::size_t end_bytes = 512;
  if (text.size() <= bytes_max) return std::string(text);
  std::string cut(front_of(text, 2 * end_bytes));
  cut.append("... (").append(std::to_string(text.size())).append(" bytes) ...");
  return utf8_of(cut.append(text.substr(text.size() - end_bytes)));
}

void complain(std::string_view what) {
  const bool colours = terminal_of(STDERR_FILENO).colours;
  std::cerr << (colours ? red("millrace:") : "millrace:") << ' ' << printable(what) << '\n';
}

int tell(const Result<>& done) {
  // Where it has ended because of what it prints into, that is told below.
  if (done || !check_output()) return 0;
  complain(bounded(done.error().detail));
  return exit_code_of(done.error());
}

// What nobody types: a shell that completes a line, and the build of the manual.
std::optional<int> run_hidden(std::span<char* const> words) {
  if (words.size() < 2) return std::nullopt;
  const std::string_view verb = words[1];
  if (verb == "complete" && words.size() > 2 && words[2] == std::string_view("--")) {
    print_completions(words.subspan(3));
  }
  if (verb == "manual") return tell(print_manual(words.size() > 2 ? words[2] : ""));
  return std::nullopt;
}

int run_tool(int argc, char** argv) {
  if (const auto code = run_hidden({argv, static_cast<std::size_t>(argc)})) return *code;
  Context context;
  context.trial = trial_by_this_program();
  Action action;
  const auto program = make_program(context, action);
  auto& app = *program;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for = error.get_exit_code() == 0;  // --help and --version
    if (!asked_for) {
      std::cerr << printable(usage_error(app, error));
      return usage_is_wrong;
    }
    std::ostringstream text;
    app.exit(error, text, std::cerr);
    const auto columns = terminal_of(STDOUT_FILENO).columns;
    std::cout << (columns ? fitted_help(text.str(), *columns) : text.str());
    return 0;
  }
  if (!action) {
    std::cerr << app.help();
    return usage_is_wrong;
  }
  return tell(action());
}

int run_and_tell(int argc, char** argv) {
  StandardOutput output(STDOUT_FILENO);
  const int code = run_tool(argc, argv);
  std::cout.flush();
  // Whoever reads a pipe has what it wanted of it; what has failed all the same was told.
  if (output.failure() == 0 || output.failure() == EPIPE) return code;
  complain(std::string("stdout: ") + std::strerror(output.failure()) +
           ": what was printed is not complete");
  return code == 0 ? output_failed : code;
}

}  // namespace
}  // namespace millrace::kernel::cli

int main(int argc, char** argv) {
  using namespace millrace::kernel::cli;
  if (argc == 3 && std::string_view(argv[1]) == millrace::kernel::trial_argument) {
    return millrace::kernel::run_trial(argv[2]);
  }
  try {
    hold_standard_descriptors();
    // Writing to a pipe or a connection that is gone fails, and is told.
    ::signal(SIGPIPE, SIG_IGN);
    return run_and_tell(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "millrace: " << error.what() << '\n';
    return program_failed;
  }
}
