// What the tool prints: a table for people, or JSON of a stable shape for programs. Both go by
// std::cout.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/value.hpp>

#include "kernel/cli/terminal.h"

namespace millrace::kernel::cli {

enum class OutputFormat { table, json };

/// What somebody has named, as a message has it: in quotes, of one line, its front alone where it
/// is too long.
std::string in_quotes(std::string_view text);

/// "1 record", "2 records": of names whose plural has an s more.
std::string counted(std::uint64_t count, std::string_view name);
/// One word of a command that somebody copies into a shell: quoted where it has to be.
std::string for_shell(std::string_view word);

/// How a state is shown where there are colours: what somebody has to look after stands out.
enum class Tone { plain, warning, bad };

struct Cell {
  template <class Text>
    requires std::constructible_from<std::string, Text>
  Cell(Text&& what, Tone how = Tone::plain) : text(std::forward<Text>(what)), tone(how) {}

  std::string text;
  Tone tone;
};

/// Rows under headings, columns aligned. Prints nothing but the headings when there are no rows. Of
/// a text that is too long it has the front, and how long it is.
///
/// On a terminal it fits: where the columns are too wide, the last one is wrapped when that is
/// enough, else a row becomes a block of lines, each with its heading.
class Table {
 public:
  explicit Table(std::vector<std::string> headings);
  void add(std::vector<Cell> row);
  void print() const;
  std::string text(const Terminal& terminal) const;

 private:
  using Widths = std::vector<std::size_t>;
  Widths widths() const;
  std::string in_columns(const Terminal& terminal, const Widths& widths) const;
  std::string in_blocks(const Terminal& terminal) const;

  std::vector<std::string> headings_;
  std::vector<std::vector<Cell>> rows_;
};

/// One document of UTF-8, and a line's end.
void print_json(const boost::json::value& value);

}  // namespace millrace::kernel::cli
