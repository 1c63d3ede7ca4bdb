// What millraced takes, as a tree of CLI11: to parse, to complete, to tell of in its manual page.
#pragma once

#include <memory>
#include <string>

#include "kernel/daemon/arguments.h"

namespace CLI {
class App;
}

namespace millrace::kernel {

/// Parsing fills `arguments`, which outlives what is returned.
std::unique_ptr<CLI::App> make_daemon(Arguments& arguments, const std::string& version);

}  // namespace millrace::kernel
