#include "kernel/daemon/arguments_tree.h"

#include <CLI/CLI.hpp>

#include "kernel/cli/usage.h"

namespace millrace::kernel {

std::unique_ptr<CLI::App> make_daemon(Arguments& arguments, const std::string& version) {
  auto daemon = std::make_unique<CLI::App>(
      "The Millrace broker. With no --config it runs the embedded default.", "millraced");
  auto& app = *daemon;
  app.add_option("--config", arguments.config.path,
                 "the TOML file; conf.d/*.toml beside it is read too")
      ->type_name("FILE")
      ->check(cli::not_empty);
  app.add_option("--set", arguments.config.sets,
                 "set one key, after all files: --set broker.data=/tmp/x "
                 "--set 'defaults.\"num.partitions\"=3'")
      ->type_name("KEY=VALUE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1)
      ->allow_extra_args(false);
  app.add_flag("--check", arguments.check, "check the configuration and the plugins, then exit");
  app.set_version_flag("--version", "millraced " + version);
  app.footer([] {
    return "Options of the configuration, by table:\n" + describe(kernel_options()) +
           "[defaults], [transport.kafka] and other tables of plugins:\n"
           "  millrace config explain KEY, such as transport.kafka.listen; millrace plugin list,\n"
           "  millrace plugin show KIND/NAME; configs/millrace.toml is a file to begin with\n"
           "Exit codes:\n"
           "  0 stopped as asked, 64 wrong usage, 65 data that cannot be read,\n"
           "  69 a service that it needs, or its address, is not there, 70 a mistake of the "
           "program,\n"
           "  73 the data directory cannot be made or locked, 78 wrong configuration,\n"
           "  74 stopped as asked, but a disk did not take all: it starts as after a kill";
  });
  return daemon;
}

}  // namespace millrace::kernel
