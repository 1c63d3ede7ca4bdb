#include "kernel/cli/terminal.h"

#include <clocale>
#include <cstdlib>
#include <cwchar>

#include <algorithm>
#include <charconv>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include <millrace/utf8.h>

namespace millrace::kernel::cli {

namespace {

constexpr std::size_t columns_unless_told = 80;

bool is_set(const char* variable) { return variable != nullptr && *variable != '\0'; }

std::size_t number_of(const char* variable) {
  if (variable == nullptr) return 0;
  const std::string_view text(variable);
  std::size_t number = 0;
  const auto [end, failed] = std::from_chars(text.begin(), text.end(), number);
  return failed == std::errc{} && end == text.end() ? number : 0;
}

// The C library knows widths by the locale, which is none of ours: texts are UTF-8 everywhere.
class Utf8Locale {
 public:
  Utf8Locale() : made_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (made_ != nullptr) before_ = ::uselocale(made_);
  }
  ~Utf8Locale() {
    if (made_ == nullptr) return;
    ::uselocale(before_);
    ::freelocale(made_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t made_;
  locale_t before_ = nullptr;
};

constexpr std::string_view bold_begins = "\x1b[1m";
constexpr std::string_view red_begins = "\x1b[31m";
constexpr std::string_view yellow_begins = "\x1b[33m";
constexpr std::string_view tone_ends = "\x1b[0m";

std::string between(std::string_view begin, std::string_view text) {
  return std::string(begin).append(text).append(tone_ends);
}

// How much of the front stays as it is: what ends a line, tabs, and our own tones.
std::size_t layout_bytes(std::string_view text, bool with_tones) {
  if (text.front() == '\n' || text.front() == '\t') return 1;
  if (text.starts_with("\r\n")) return 2;
  if (!with_tones) return 0;
  for (const auto tone : {bold_begins, red_begins, yellow_begins, tone_ends}) {
    if (text.starts_with(tone)) return tone.size();
  }
  return 0;
}

std::string escaped(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text.append("\\x").append({digits[byte >> 4U], digits[byte & 0xfU]});
  }
  return text;
}

std::string printable_text(std::string_view text, bool with_tones) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    auto bytes = layout_bytes(text, with_tones);
    bool stays = bytes > 0;
    if (!stays) {
      const auto next = first_code_point(text);
      const bool control = next.point < 0x20 || (next.point >= 0x7f && next.point < 0xa0);
      stays = next.is_valid() && !control;
      bytes = next.bytes;
    }
    const auto front = text.substr(0, bytes);
    text.remove_prefix(bytes);
    if (stays) {
      shown.append(front);
    } else {
      shown.append(escaped(front));
    }
  }
  return shown;
}

}  // namespace

Terminal terminal_by(const TerminalFacts& facts) {
  if (!facts.is_terminal) return {};
  auto columns = number_of(facts.columns);
  if (columns == 0) columns = facts.window_columns;
  if (columns == 0) columns = columns_unless_told;
  const bool dumb = !is_set(facts.term) || std::string_view(facts.term) == "dumb";
  return {.columns = columns, .colours = !dumb && !is_set(facts.no_color)};
}

Terminal terminal_of(int descriptor) {
  TerminalFacts facts{.is_terminal = ::isatty(descriptor) == 1,
                      .columns = std::getenv("COLUMNS"),
                      .no_color = std::getenv("NO_COLOR"),
                      .term = std::getenv("TERM")};
  winsize window{};
  if (facts.is_terminal && ::ioctl(descriptor, TIOCGWINSZ, &window) == 0) {
    facts.window_columns = window.ws_col;
  }
  return terminal_by(facts);
}

std::size_t display_width(std::string_view line) {
  bool plain = true;
  for (const char c : line) plain = plain && c >= ' ' && c <= '~';
  if (plain) return line.size();
  const Utf8Locale utf8;
  std::size_t width = 0;
  while (!line.empty()) {
    const auto next = first_code_point(line);
    line.remove_prefix(next.bytes);
    const auto columns = ::wcwidth(static_cast<wchar_t>(next.point));
    // Of what the C library does not know a terminal shows something.
    width += columns < 0 ? 1 : static_cast<std::size_t>(columns);
  }
  return width;
}

std::vector<std::string> wrapped(std::string_view line, std::size_t columns) {
  std::vector<std::string> lines;
  std::string current;
  std::size_t width = 0;
  while (!line.empty()) {
    const auto space = line.find(' ');
    const auto word = line.substr(0, space);
    line.remove_prefix(space == std::string_view::npos ? line.size() : space + 1);
    if (word.empty()) continue;
    const auto word_width = display_width(word);
    if (!current.empty() && width + 1 + word_width > columns) {
      lines.push_back(std::exchange(current, {}));
      width = 0;
    }
    if (!current.empty()) {
      current += ' ';
      ++width;
    }
    current += word;
    width += word_width;
  }
  lines.push_back(std::move(current));
  return lines;
}

std::string fitted_help(std::string_view text, std::size_t columns) {
  constexpr std::string_view example = "  millrace";
  constexpr std::size_t indent_of_rest = 6;
  std::string fitted;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (display_width(line) <= columns || line.starts_with(example)) {
      fitted.append(line) += '\n';
      continue;
    }
    const auto begin = std::min(line.find_first_not_of(' '), line.size());
    const auto gap = line.find("  ", begin);
    auto column = gap == std::string_view::npos ? begin : line.find_first_not_of(' ', gap);
    const auto words = line.substr(std::min(column, line.size()));
    // What stands before the column, and whether there is room beside it.
    std::string before(line.substr(0, gap == std::string_view::npos ? begin : column));
    if (column > columns / 2) {
      const auto name = before.substr(0, before.find_last_not_of(' ') + 1);
      if (!name.empty()) fitted += name + '\n';
      column = indent_of_rest;
      before.assign(column, ' ');
    }
    for (const auto& part : wrapped(words, columns > column ? columns - column : 1)) {
      fitted += before + part + '\n';
      before.assign(column, ' ');
    }
  }
  return fitted;
}

std::string printable(std::string_view text) { return printable_text(text, false); }
std::string printable_with_tones(std::string_view text) { return printable_text(text, true); }

std::string bold(std::string_view text) { return between(bold_begins, text); }
std::string red(std::string_view text) { return between(red_begins, text); }
std::string yellow(std::string_view text) { return between(yellow_begins, text); }

}  // namespace millrace::kernel::cli
