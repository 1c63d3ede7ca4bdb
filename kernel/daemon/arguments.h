// The command line of millraced.
#pragma once

#include <string>
#include <variant>

#include "kernel/config/config.h"

namespace millrace::kernel {

/// The exit codes of the daemon: those of sysexits.h that its contract names.
enum class Exit : int {
  clean = 0,
  usage = 64,
  bad_data = 65,
  unavailable = 69,  ///< a needed service, or the address to listen on
  internal = 70,
  cannot_create = 73,  ///< the data directory cannot be made or locked
  not_stored = 74,     ///< stopped as asked, but a disk did not take all; it starts as after a kill
  bad_config = 78,
};

struct Arguments {
  ConfigSource config;
  bool check = false;
};

/// What to run with, or the code to exit with at once (after --help, --version, or a mistake, which
/// has been explained on stderr).
std::variant<Arguments, Exit> parse_arguments(int argc, char** argv);

}  // namespace millrace::kernel
