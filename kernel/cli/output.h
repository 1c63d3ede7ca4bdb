// What the tool prints: a table for people, or JSON of a stable shape for programs.
#pragma once

#include <string>
#include <vector>

#include <boost/json/value.hpp>

namespace millrace::kernel::cli {

enum class OutputFormat { table, json };

/// Rows under headings, columns aligned. Prints nothing but the headings when there are no rows.
class Table {
 public:
  explicit Table(std::vector<std::string> headings) { rows_.push_back(std::move(headings)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// One document, and a line's end.
void print_json(const boost::json::value& value);

}  // namespace millrace::kernel::cli
