// A plugin's folder to start from.
#pragma once

#include <string>

#include <millrace/result.h>

namespace millrace::kernel::cli {

struct NewPlugin {
  std::string name;
  std::string kind;
  std::string into;       ///< folder that gets it; empty: NAME in the current one
  std::string templates;  ///< folder of the templates; empty: ../share/millrace/template
};

/// Where the running program is installed: what `bin` is in.
std::string installed_prefix();

/// Copies the template of a kind, with `name` in place of its own. Nothing is written when the
/// folder is there already. Returns the folder.
Result<std::string> make_plugin_folder(const NewPlugin& wanted);

}  // namespace millrace::kernel::cli
