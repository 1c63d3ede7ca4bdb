// What the two programs say to arguments that they do not take.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace millrace::kernel::cli {

/// Which verb, what is wrong, what would be right with the nearest that is known, and where to read
/// on; a line each. `program` is the App whose parse() threw `error`.
std::string usage_error(const CLI::App& program, const CLI::ParseError& error);

}  // namespace millrace::kernel::cli
