// What the tool prints: a table for people, or JSON of a stable shape for programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

namespace millrace::kernel::cli {

enum class OutputFormat { table, json };

/// What somebody has named, as a message has it: in quotes, of one line, its front alone where it
/// is too long.
std::string in_quotes(std::string_view text);

/// Rows under headings, columns aligned. Prints nothing but the headings when there are no rows. Of
/// a text that is too long it has the front, and how long it is.
class Table {
 public:
  explicit Table(std::vector<std::string> headings) { rows_.push_back(std::move(headings)); }
  void add(std::vector<std::string> row);
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// One document of UTF-8, and a line's end.
void print_json(const boost::json::value& value);

}  // namespace millrace::kernel::cli
