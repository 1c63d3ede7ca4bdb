#include "kernel/cli/program.h"

#include <CLI/CLI.hpp>

#include "kernel/cli/usage.h"

namespace millrace::kernel::cli {

namespace {

constexpr const char* exit_codes =
    "Exit codes:\n"
    "   0  done\n"
    "   1  not done: what is named is not there, or is not in a state for it\n"
    "  64  wrong arguments, or a value that the broker does not take\n"
    "  65  data that is damaged, or a plugin that does not fit\n"
    "  69  no broker answers, or it cannot do it now\n"
    "  70  an error of this program\n"
    "  74  what it prints cannot be written\n"
    " 130  ended by Ctrl-C";

}  // namespace

int exit_code_of(const Error& error) {
  switch (error.code) {
    case Errc::invalid_argument:
    case Errc::out_of_range: return 64;
    case Errc::corrupt:
    case Errc::incompatible: return 65;
    case Errc::io:
    case Errc::closed:
    case Errc::timed_out:
    case Errc::overloaded: return 69;
    default: return 1;
  }
}

std::unique_ptr<CLI::App> make_program(Context& context, Action& action) {
  auto program = std::make_unique<CLI::App>("Millrace from the command line.", "millrace");
  auto& app = *program;
  app.fallthrough();
  app.set_version_flag("--version", std::string("millrace " MILLRACE_VERSION));
  app.add_option("-b,--bootstrap", context.bootstrap,
                 "any broker of the cluster, or several with commas")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option_function<std::string>(
         "-o,--output",
         [&context](const std::string& format) {
           context.output = format == "json" ? OutputFormat::json : OutputFormat::table;
         },
         "table, or json: an object to a line")
      ->type_name("FORMAT")
      ->default_str("table")
      ->check(one_of({"table", "json"}));
  add_topic_verb(app, context, action);
  add_group_verb(app, context, action);
  add_produce_verb(app, context, action);
  add_consume_verb(app, context, action);
  add_bench_verb(app, context, action);
  add_config_verb(app, context, action);
  add_cluster_verb(app, context, action);
  add_log_verb(app, context, action);
  add_plugin_verb(app, context, action);
  add_stream_verb(app, context, action);
  add_aggregate_verb(app, context, action);
  add_doctor_verb(app, context, action);
  // Behind the verbs, which would have it too.
  app.footer(exit_codes);
  return program;
}

}  // namespace millrace::kernel::cli
