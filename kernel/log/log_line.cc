#include "kernel/log/log_line.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

#include <millrace/utf8.h>

namespace millrace::kernel {

namespace {

std::string time_text(Timestamp time) {
  const std::time_t seconds = time.ms / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[40];
  const auto written = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::string result(text, written);
  std::snprintf(text, sizeof text, ".%03dZ", static_cast<int>(time.ms % 1000));
  return result + text;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// The escapes of JSON, which text lines share. What is no UTF-8 would be no JSON, and the controls
// beyond ASCII (U+0080 to U+009F) are some terminals' commands too.
void append_escaped(std::string& line, std::string_view text) {
  while (!text.empty()) {
    const auto next = first_code_point(text);
    const auto bytes = text.substr(0, next.bytes);
    const char c = text.front();
    text.remove_prefix(next.bytes);
    if (!next.is_valid() || (next.point >= 0x80 && next.point < 0xa0)) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(next.point & 0xffffU));
      line += code;
    } else if (next.bytes > 1) {
      line += bytes;
    } else if (c == '"' || c == '\\') {
      line += '\\';
      line += c;
    } else if (c == '\n') {
      line += "\\n";
    } else if (c == '\t') {
      line += "\\t";
    } else if (is_control(c)) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned char>(c));
      line += code;
    } else {
      line += c;
    }
  }
}

void append_quoted(std::string& line, std::string_view text) {
  line += '"';
  append_escaped(line, text);
  line += '"';
}

bool needs_quotes(std::string_view value) {
  return value.empty() || std::ranges::any_of(value, [](char c) {
           return c == ' ' || c == '"' || c == '=' || c == '\\' || is_control(c) ||
                  static_cast<unsigned char>(c) >= 0x80;
         });
}

std::string_view padded_name(LogLevel level) {
  switch (level) {
    case LogLevel::trace: return "TRACE";
    case LogLevel::debug: return "DEBUG";
    case LogLevel::info: return "INFO ";
    case LogLevel::warning: return "WARN ";
    case LogLevel::error: break;
  }
  return "ERROR";
}

// Those of syslog, as sd-daemon(3) has them.
std::string_view journal_prefix(LogLevel level) {
  switch (level) {
    case LogLevel::trace:
    case LogLevel::debug: return "<7>";
    case LogLevel::info: return "<6>";
    case LogLevel::warning: return "<4>";
    case LogLevel::error: break;
  }
  return "<3>";
}

std::string timeless_line(const LogEvent& event) {
  std::string line(padded_name(event.level));
  line += ' ';
  line += event.subsystem;
  line += ": ";
  append_escaped(line, event.message);
  for (const auto& field : event.fields) {
    line += ' ';
    line += field.name;
    line += '=';
    if (needs_quotes(field.value)) {
      append_quoted(line, field.value);
    } else {
      line += field.value;
    }
  }
  line += '\n';
  return line;
}

}  // namespace

std::string text_line(const LogEvent& event) {
  return time_text(event.time) + ' ' + timeless_line(event);
}

std::string json_line(const LogEvent& event) {
  std::string line = "{";
  const auto member = [&line](std::string_view name, std::string_view value) {
    if (line.size() > 1) line += ',';
    append_quoted(line, name);
    line += ':';
    append_quoted(line, value);
  };
  member("time", time_text(event.time));
  member("level", name_of(event.level));
  member("subsystem", event.subsystem);
  member("message", event.message);
  for (const auto& field : event.fields) member(field.name, field.value);
  line += "}\n";
  return line;
}

std::string journal_message(bool json, const LogEvent& event) {
  auto line = json ? json_line(event) : timeless_line(event);
  line.pop_back();
  return line;
}

std::string styled_line(LineStyle style, const LogEvent& event) {
  if (!style.journal) return style.json ? json_line(event) : text_line(event);
  std::string line(journal_prefix(event.level));
  return line + (style.json ? json_line(event) : timeless_line(event));
}

}  // namespace millrace::kernel
