#include "kernel/cli/output.h"

#include <algorithm>
#include <iostream>
#include <numeric>

#include <boost/json.hpp>
#include <unistd.h>

#include <millrace/utf8.h>

#include "kernel/cli/standard_output.h"

namespace millrace::kernel::cli {

namespace {

constexpr std::size_t gap = 2;
// Less than that is no column to read a text in.
constexpr std::size_t wrapped_columns_min = 16;

std::string toned(const std::string& text, Tone tone, const Terminal& terminal) {
  if (!terminal.colours || text.empty()) return text;
  switch (tone) {
    case Tone::warning: return yellow(text);
    case Tone::bad: return red(text);
    case Tone::plain: break;
  }
  return text;
}

std::string heading_text(const std::string& heading, const Terminal& terminal) {
  return terminal.colours && !heading.empty() ? bold(heading) : heading;
}

void pad(std::string& line, std::size_t columns) { line.append(columns, ' '); }

// Of a column, when its texts are wrapped as far as they can be.
std::size_t widest_word(const std::vector<std::vector<Cell>>& rows, std::size_t column) {
  std::size_t widest = 0;
  for (const auto& row : rows) {
    for (const auto& word : wrapped(row[column].text, 1)) {
      widest = std::max(widest, display_width(word));
    }
  }
  return widest;
}

}  // namespace

std::string counted(std::uint64_t count, std::string_view name) {
  return std::to_string(count).append(" ").append(name).append(count == 1 ? "" : "s");
}

std::string for_shell(std::string_view word) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./:+=@%,-").contains(c);
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return std::string(word);
  // What a terminal would take for a command stands as an escape, which $'' alone knows. It is of
  // bytes: no code point of a name, and no length, may become another one.
  if (shown(word, word.size()) != word) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string quoted = "$'";
    for (const char c : word) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20 || byte >= 0x7f) {
        quoted.append("\\x").append({digits[byte >> 4U], digits[byte & 0xfU]});
        continue;
      }
      if (c == '\'' || c == '\\') quoted += '\\';
      quoted += c;
    }
    return quoted + '\'';
  }
  auto quoted = std::string("'");
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + '\'';
}

std::string in_quotes(std::string_view text) { return "'" + shown(text) + "'"; }

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {}

void Table::add(std::vector<Cell> row) {
  for (auto& cell : row) cell.text = shown(cell.text);
  row.resize(headings_.size(), "");
  rows_.push_back(std::move(row));
}

void Table::print() const {
  const auto lines = text(terminal_of(STDOUT_FILENO));
  if (auto* output = standard_output()) {
    output->add(output->is_terminal() ? printable_with_tones(lines) : lines);
  } else {
    std::cout << lines;
  }
}

std::string Table::text(const Terminal& terminal) const {
  auto widths = this->widths();
  if (!terminal.columns) return in_columns(terminal, widths);
  const auto total = std::accumulate(widths.begin(), widths.end(), gap * (widths.size() - 1));
  if (total <= *terminal.columns) return in_columns(terminal, widths);
  const auto others = total - widths.back();
  const auto left = *terminal.columns > others ? *terminal.columns - others : 0;
  const auto last = widths.size() - 1;
  if (left >= wrapped_columns_min && widest_word(rows_, last) <= left) {
    widths.back() = left;
    return in_columns(terminal, widths);
  }
  // There is nothing to be read in headings alone.
  return rows_.empty() ? in_columns(terminal, widths) : in_blocks(terminal);
}

Table::Widths Table::widths() const {
  Widths widths;
  for (const auto& heading : headings_) widths.push_back(display_width(heading));
  for (const auto& row : rows_) {
    for (std::size_t at = 0; at < row.size(); ++at) {
      widths[at] = std::max(widths[at], display_width(row[at].text));
    }
  }
  return widths;
}

std::string Table::in_columns(const Terminal& terminal, const Widths& widths) const {
  const auto last = widths.size() - 1;
  std::string lines;
  std::size_t before_last = 0;
  for (std::size_t at = 0; at < last; ++at) {
    lines += heading_text(headings_[at], terminal);
    pad(lines, widths[at] - display_width(headings_[at]) + gap);
    before_last += widths[at] + gap;
  }
  lines += heading_text(headings_[last], terminal) + '\n';
  for (const auto& row : rows_) {
    for (std::size_t at = 0; at < last; ++at) {
      lines += toned(row[at].text, row[at].tone, terminal);
      pad(lines, widths[at] - display_width(row[at].text) + gap);
    }
    if (display_width(row[last].text) <= widths[last]) {
      lines += toned(row[last].text, row[last].tone, terminal) + '\n';
      continue;
    }
    bool first = true;
    for (const auto& part : wrapped(row[last].text, widths[last])) {
      if (!std::exchange(first, false)) pad(lines, before_last);
      lines += toned(part, row[last].tone, terminal) + '\n';
    }
  }
  return lines;
}

std::string Table::in_blocks(const Terminal& terminal) const {
  std::size_t width = 0;
  for (const auto& heading : headings_) width = std::max(width, display_width(heading));
  const auto before = width + gap;
  const auto left = *terminal.columns > before ? *terminal.columns - before : 1;
  std::string lines;
  for (const auto& row : rows_) {
    if (!lines.empty()) lines += '\n';
    for (std::size_t at = 0; at < row.size(); ++at) {
      if (row[at].text.empty()) continue;
      lines += heading_text(headings_[at], terminal);
      pad(lines, before - display_width(headings_[at]));
      bool first = true;
      for (const auto& part : wrapped(row[at].text, left)) {
        if (!std::exchange(first, false)) pad(lines, before);
        lines += toned(part, row[at].tone, terminal) + '\n';
      }
    }
  }
  return lines;
}

void print_json(const boost::json::value& value) {
  // Names come from arguments and clients, and may be any bytes; they stand in the texts alone.
  std::cout << utf8_of(boost::json::serialize(value)) << '\n';
}

}  // namespace millrace::kernel::cli
