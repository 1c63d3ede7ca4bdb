// What stands at the other end of stdout and stderr, and how much room text takes there.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::kernel::cli {

struct Terminal {
  std::optional<std::size_t> columns;  ///< none: a file or a pipe, where nothing is fitted
  bool colours = false;
};

/// What is known of a descriptor, and the variables of the environment that have a say; nullptr:
/// not set.
struct TerminalFacts {
  bool is_terminal = false;
  std::size_t window_columns = 0;  ///< 0: the terminal does not tell
  const char* columns = nullptr;   ///< COLUMNS, which goes before the window
  const char* no_color = nullptr;  ///< NO_COLOR, as no-color.org has it: set to anything
  const char* term = nullptr;      ///< TERM
};
Terminal terminal_by(const TerminalFacts& facts);
Terminal terminal_of(int descriptor);

/// How many columns a line of UTF-8 takes: two for what is wide, none for what is put upon the
/// letter before it.
std::size_t display_width(std::string_view line);

/// `line` cut at spaces into lines of at most `columns`; a word that is wider has one for itself.
/// Never none.
std::vector<std::string> wrapped(std::string_view line, std::size_t columns);

/// The text of a --help with its lines cut to `columns`: what stands in a column of its own, behind
/// two spaces, goes on below itself, or below its line where there is no room beside it. Examples
/// stay as they are: they are copied.
std::string fitted_help(std::string_view text, std::size_t columns);

/// Text of somebody else as a terminal may be given it: what that would take for a command, and
/// bytes that are no UTF-8, are shown as \xHH. Ends of lines and tabs stay.
std::string printable(std::string_view text);
/// The same of our own text: what bold() and its like make stays too.
std::string printable_with_tones(std::string_view text);

/// As a terminal is told it.
std::string bold(std::string_view text);
std::string red(std::string_view text);
std::string yellow(std::string_view text);

}  // namespace millrace::kernel::cli
