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

/// A check of an argument: an empty one, of a shell's variable that is not set, names nothing, and
/// is not as if it were not there.
std::string not_empty(const std::string& value);

/// Refuses --bootstrap without --admin: it says nothing of where the admin API listens, and another
/// broker would be asked than the one that is named.
void require_admin(const CLI::App& program, const CLI::App& verb);

}  // namespace millrace::kernel::cli
