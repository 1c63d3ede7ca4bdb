#include "kernel/cli/output.h"

#include <algorithm>
#include <iostream>

#include <boost/json.hpp>

#include <millrace/utf8.h>

namespace millrace::kernel::cli {

std::string in_quotes(std::string_view text) { return "'" + shown(text) + "'"; }

void Table::add(std::vector<std::string> row) {
  for (auto& cell : row) cell = shown(cell);
  rows_.push_back(std::move(row));
}

void Table::print() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t at = 0; at < row.size(); ++at)
      widths[at] = std::max(widths[at], row[at].size());
  }
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t at = 0; at < row.size(); ++at) {
      line += row[at];
      const bool last = at + 1 == row.size();
      if (!last) line.append(widths[at] - row[at].size() + 2, ' ');
    }
    std::cout << line << '\n';
  }
}

void print_json(const boost::json::value& value) {
  // Names come from arguments and clients, and may be any bytes; they stand in the texts alone.
  std::cout << utf8_of(boost::json::serialize(value)) << '\n';
}

}  // namespace millrace::kernel::cli
