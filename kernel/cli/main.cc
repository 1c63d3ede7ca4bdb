// millrace: the command line tool. One file per verb; it speaks the Kafka protocol, so it works
// with any broker that does. Streams are Millrace's own: for them it asks the admin API.
#include <iostream>

#include <CLI/CLI.hpp>

#include "kernel/cli/context.h"
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

int run_tool(int argc, char** argv) {
  Context context;
  Action action;
  CLI::App app("Millrace from the command line.", "millrace");
  app.fallthrough();
  app.set_version_flag("--version", std::string("millrace " MILLRACE_VERSION));
  app.add_option("-b,--bootstrap", context.bootstrap, "any broker of the cluster")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  const std::map<std::string, OutputFormat> formats{{"table", OutputFormat::table},
                                                    {"json", OutputFormat::json}};
  app.add_option("-o,--output", context.output, "table or json")
      ->transform(CLI::CheckedTransformer(formats));
  add_topic_verb(app, context, action);
  add_group_verb(app, context, action);
  add_produce_verb(app, context, action);
  add_consume_verb(app, context, action);
  add_config_verb(app, context, action);
  add_cluster_verb(app, context, action);
  add_log_verb(app, context, action);
  add_plugin_verb(app, context, action);
  add_stream_verb(app, context, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for = error.get_exit_code() == 0;  // --help and --version
    app.exit(error, std::cout, std::cerr);
    return asked_for ? 0 : 64;
  }
  if (!action) {
    std::cerr << app.help();
    return 64;
  }
  const auto done = action();
  if (done) return 0;
  std::cerr << "millrace: " << done.error().detail << '\n';
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
