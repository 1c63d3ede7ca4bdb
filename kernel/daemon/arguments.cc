#include "kernel/daemon/arguments.h"

#include <iostream>

#include <CLI/CLI.hpp>

#include "kernel/cli/usage.h"

namespace millrace::kernel {

std::variant<Arguments, Exit> parse_arguments(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("The Millrace broker. With no --config it runs the embedded default.", "millraced");
  app.add_option("--config", arguments.config.path,
                 "the TOML file; conf.d/*.toml beside it is read too")
      ->type_name("FILE");
  app.add_option("--set", arguments.config.sets,
                 "set one key, after all files: --set broker.data=/tmp/x "
                 "--set 'defaults.\"num.partitions\"=3'")
      ->type_name("KEY=VALUE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1)
      ->allow_extra_args(false);
  app.add_flag("--check", arguments.check, "check the configuration and the plugins, then exit");
  app.set_version_flag("--version", std::string("millraced " MILLRACE_VERSION));
  app.footer([] {
    return "Options of the configuration, by table:\n" + describe(kernel_options()) +
           "[defaults], [transport.kafka] and other tables of plugins:\n"
           "  millrace config explain KEY, such as transport.kafka.listen; millrace plugin list,\n"
           "  millrace plugin show KIND/NAME; configs/millrace.toml is a file to begin with";
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for = error.get_exit_code() == 0;  // --help and --version
    if (!asked_for) {
      std::cerr << cli::usage_error(app, error);
      return Exit::usage;
    }
    app.exit(error, std::cout, std::cerr);
    return Exit::clean;
  }
  return arguments;
}

}  // namespace millrace::kernel
