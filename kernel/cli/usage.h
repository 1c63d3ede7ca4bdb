// What the two programs say to arguments that they do not take.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

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

/// A check of a name that may be given to what is made: one of spaces alone is a slip too.
std::string not_blank(const std::string& value);

/// Refuses --bootstrap without --admin: it says nothing of where the admin API listens, and another
/// broker would be asked than the one that is named.
void require_admin(const CLI::App& program, const CLI::App& verb);

/// What is wrong with a value, as CLI11 asks it; nothing where that is nothing.
using Check = std::function<std::string(const std::string&)>;

std::string check_whole_number(std::string_view value, std::int64_t min, std::int64_t max);

/// One of a few words.
Check one_of(std::vector<std::string> words);
/// A whole number; what is beyond the bounds is told with them.
template <class Number>
Check whole_number(Number min, Number max = std::numeric_limits<Number>::max()) {
  return [=](const std::string& value) { return check_whole_number(value, min, max); };
}
/// A topic's name as Kafka allows them.
std::string topic_name(const std::string& value);

/// What --help of `verb` ends with: whole command lines that can be typed as they stand. A test
/// parses them all.
void add_examples(CLI::App& verb, const std::vector<std::string>& lines);

}  // namespace millrace::kernel::cli
