// millrace: the command line tool. One file per verb; it speaks the Kafka protocol, so it works
// with any broker that does. Streams and aggregates are Millrace's own: for them it asks the admin
// API.
#include <iostream>

#include <CLI/CLI.hpp>

#include <millrace/utf8.h>

#include "kernel/cli/context.h"
#include "kernel/cli/usage.h"
#include "kernel/env/block_on.h"
#include "kernel/env/real_environment.h"
#include "kernel/log/metrics_registry.h"
#include "kernel/log/stderr_log.h"

namespace millrace::kernel::cli {

Result<> run(const std::function<Task<>(Environment&)>& body) {
  StderrLog sink({.others = LogLevel::warning, .of = {}}, "text");
  MetricsRegistry metrics;
  MR_TRY(auto environment,
         RealEnvironment::start({.shards = 1, .workers = 1}, Log(sink, "environment"), metrics));
  auto result = block_on(*environment->shards().front(), [&] { return body(*environment); });
  environment->stop();
  return result;
}

namespace {

// sysexits.h: what a script can tell apart.
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

// Of a message that repeats something very long: how it begins and how it ends.
std::string bounded(std::string_view text) {
  constexpr std::size_t bytes_max = 4096;
  constexpr std::size_t end_bytes = 512;
  if (text.size() <= bytes_max) return std::string(text);
  std::string cut(front_of(text, 2 * end_bytes));
  cut.append("... (").append(std::to_string(text.size())).append(" bytes) ...");
  return utf8_of(cut.append(text.substr(text.size() - end_bytes)));
}

OutputFormat format_of(const std::string& name) {
  if (name == "table") return OutputFormat::table;
  if (name == "json") return OutputFormat::json;
  throw CLI::ValidationError("--output", "expected table or json, found \"" + shown(name) + "\"");
}

int run_tool(int argc, char** argv) {
  Context context;
  Action action;
  CLI::App app("Millrace from the command line.", "millrace");
  app.fallthrough();
  app.set_version_flag("--version", std::string("millrace " MILLRACE_VERSION));
  app.add_option("-b,--bootstrap", context.bootstrap, "any broker of the cluster")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option_function<std::string>(
         "-o,--output",
         [&context](const std::string& format) { context.output = format_of(format); },
         "table, or json: an object to a line")
      ->type_name("FORMAT")
      ->default_str("table");
  add_topic_verb(app, context, action);
  add_group_verb(app, context, action);
  add_produce_verb(app, context, action);
  add_consume_verb(app, context, action);
  add_config_verb(app, context, action);
  add_cluster_verb(app, context, action);
  add_log_verb(app, context, action);
  add_plugin_verb(app, context, action);
  add_stream_verb(app, context, action);
  add_aggregate_verb(app, context, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for = error.get_exit_code() == 0;  // --help and --version
    if (!asked_for) {
      std::cerr << usage_error(app, error);
      return 64;
    }
    app.exit(error, std::cout, std::cerr);
    return 0;
  }
  if (!action) {
    std::cerr << app.help();
    return 64;
  }
  const auto done = action();
  if (done) return 0;
  std::cerr << "millrace: " << bounded(done.error().detail) << '\n';
  return exit_code_of(done.error());
}

}  // namespace
}  // namespace millrace::kernel::cli

int main(int argc, char** argv) {
  try {
    return millrace::kernel::cli::run_tool(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "millrace: " << error.what() << '\n';
    return 70;
  }
}
