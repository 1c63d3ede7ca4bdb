#include "kernel/cli/message_format.h"

#include <charconv>
#include <optional>

#include "kernel/cli/datetime.h"
#include "kernel/cli/output.h"
#include "kernel/cli/terminal.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

constexpr std::string_view known_directives = "sSkKhtpoTd";

void append_number(std::string& to, std::int64_t number) { to += std::to_string(number); }

void append_bytes(std::string& to, const std::optional<Bytes>& bytes) {
  if (bytes) to += as_text(*bytes);
}

void append_size(std::string& to, const std::optional<Bytes>& bytes) {
  append_number(to, bytes ? static_cast<std::int64_t>(bytes->size()) : -1);
}

void append_headers(std::string& to, const std::vector<HeaderView>& headers) {
  bool first = true;
  for (const auto& header : headers) {
    if (!first) to += ',';
    first = false;
    to.append(header.key) += '=';
    append_bytes(to, header.value);
  }
}

constexpr std::string_view escapes = "\\n \\t \\r \\0 \\\\ \\xHH";

Error not_known(std::string_view found, std::string_view known) {
  return {Errc::invalid_argument, concat(in_quotes(found), " is not known; there are ", known)};
}

// What stands behind a backslash, whose front `left` is.
Result<char> escaped(std::string_view& left) {
  const auto rest = left;
  const char c = left.empty() ? '\0' : left.front();
  if (!left.empty()) left.remove_prefix(1);
  switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case '0': return '\0';
    case '\\': return '\\';
    case 'x': {
      unsigned value = 0;
      const auto digits = left.substr(0, 2);
      const auto [end, failed] = std::from_chars(digits.begin(), digits.end(), value, 16);
      if (failed == std::errc{} && end == digits.begin() + 2) {
        left.remove_prefix(2);
        return static_cast<char>(value);
      }
      break;
    }
    default: break;
  }
  return not_known("\\" + std::string(rest.substr(0, 1)), escapes);
}

}  // namespace

std::string_view MessageFormat::directives() {
  return "%s value, %S its bytes, %k key, %K its bytes, %h headers, %t topic, %p partition, "
         "%o offset, %T time in milliseconds, %d time as a date, %% a percent sign, and \\n \\t "
         "\\r "
         "\\0 \\\\ \\xHH";
}

Result<MessageFormat> MessageFormat::parse(std::string_view text) {
  MessageFormat format;
  std::string plain;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == '\\') {
      MR_TRY(const auto character, escaped(text));
      plain += character;
      continue;
    }
    if (c != '%') {
      plain += c;
      continue;
    }
    const auto directive = text.substr(0, 1);
    if (directive.empty()) return not_known("%", directives());
    text.remove_prefix(1);
    if (directive == "%") {
      plain += '%';
      continue;
    }
    if (!known_directives.contains(directive))
      return not_known("%" + std::string(directive), directives());
    if (!plain.empty()) format.parts_.push_back({0, std::exchange(plain, {})});
    format.parts_.push_back({directive.front(), {}});
  }
  if (!plain.empty()) format.parts_.push_back({0, std::move(plain)});
  return format;
}

MessageFormat MessageFormat::lines(bool keys, bool headers) {
  MessageFormat format;
  if (headers) format.parts_.insert(format.parts_.end(), {{'h', {}}, {0, "\t"}});
  if (keys) format.parts_.insert(format.parts_.end(), {{'k', {}}, {0, "\t"}});
  format.parts_.insert(format.parts_.end(), {{'s', {}}, {0, "\n"}});
  return format;
}

void MessageFormat::append(std::string& to, std::string_view topic, std::int32_t partition,
                           const RecordView& record) const {
  for (const auto& part : parts_) append(to, part, topic, partition, record);
}

void MessageFormat::append_printable(std::string& to, std::string_view topic,
                                     std::int32_t partition, const RecordView& record) const {
  std::string shared;
  for (const auto& part : parts_) {
    // An end of a line may have come with the message up to its last byte.
    if (part.directive != 0 || printable(part.text) == part.text) {
      append(shared, part, topic, partition, record);
      continue;
    }
    to += printable(std::exchange(shared, {}));
    to += part.text;
  }
  to += printable(shared);
}

void MessageFormat::append(std::string& to, const Part& part, std::string_view topic,
                           std::int32_t partition, const RecordView& record) {
  switch (part.directive) {
    case 's': append_bytes(to, record.value); break;
    case 'S': append_size(to, record.value); break;
    case 'k': append_bytes(to, record.key); break;
    case 'K': append_size(to, record.key); break;
    case 'h': append_headers(to, record.headers); break;
    case 't': to += topic; break;
    case 'p': append_number(to, partition); break;
    case 'o': append_number(to, record.offset.value); break;
    case 'T': append_number(to, record.timestamp.ms); break;
    case 'd': to += datetime_text(record.timestamp); break;
    default: to += part.text;
  }
}

Result<std::string> unescaped(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    char c = text.front();
    text.remove_prefix(1);
    if (c == '\\') {
      MR_TRY(c, escaped(text));
    }
    plain += c;
  }
  return plain;
}

}  // namespace millrace::kernel::cli
