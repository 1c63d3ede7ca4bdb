#include <millrace/kafka/json_writer.h>

#include <charconv>
#include <cmath>

namespace millrace::kafka {
namespace {

void append_base64(std::string& out, Bytes bytes) {
  static constexpr char alphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto present = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < present ? std::to_integer<std::uint32_t>(bytes[at + i]) : 0);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      out += i <= present ? alphabet[group >> (18 - 6 * i) & 63] : '=';
    }
  }
}

void append_escaped(std::string& out, std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += digits[c >> 4];
      out += digits[c & 15];
    } else {
      out += c;
    }
  }
}

}  // namespace

void JsonWriter::separate() {
  if (!first_) out_ += ',';
  first_ = false;
}

void JsonWriter::open(char bracket) {
  separate();
  out_ += bracket;
  first_ = true;
}

void JsonWriter::close(char bracket) {
  out_ += bracket;
  first_ = false;
}

void JsonWriter::name(std::string_view name) {
  separate();
  out_ += '"';
  out_ += name;
  out_ += "\":";
  first_ = true;
}

void JsonWriter::text(std::string_view literal) {
  separate();
  out_ += literal;
}

void JsonWriter::value(double value) {
  if (!std::isfinite(value)) return this->value(std::string_view(std::to_string(value)));
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text({digits, end});
}

void JsonWriter::value(std::string_view value) {
  text("\"");
  append_escaped(out_, value);
  out_ += '"';
}

void JsonWriter::value(const Uuid& value) { this->value(std::string_view(to_string(value))); }

void JsonWriter::value(const Buffer& value) {
  text("\"");
  append_base64(out_, value);
  out_ += '"';
}

void JsonWriter::value(const Payload& value) {
  const auto bytes = value.flatten();
  if (!bytes) return text("null");
  this->value(*bytes);
}

}  // namespace millrace::kafka
