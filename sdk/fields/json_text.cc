#include <millrace/fields/json_text.h>

namespace millrace {

void JsonText::separate() {
  if (text_.empty()) return;
  const char last = text_.back();
  if (last != '{' && last != '[' && last != ':') text_ += ',';
}

void JsonText::begin(char bracket) {
  separate();
  text_ += bracket;
}

void JsonText::end(char bracket) { text_ += bracket; }

void JsonText::key(std::string_view name) {
  separate();
  quote(name);
  text_ += ':';
}

void JsonText::string(std::string_view text) {
  separate();
  quote(text);
}

void JsonText::literal(std::string_view text) {
  separate();
  text_ += text;
}

// RFC 8259, section 7: what must be escaped; the rest stays as it is.
void JsonText::quote(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  text_ += '"';
  for (const char c : text) {
    switch (c) {
      case '"': text_ += "\\\""; break;
      case '\\': text_ += "\\\\"; break;
      case '\b': text_ += "\\b"; break;
      case '\f': text_ += "\\f"; break;
      case '\n': text_ += "\\n"; break;
      case '\r': text_ += "\\r"; break;
      case '\t': text_ += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          text_ += "\\u00";
          text_ += digits[static_cast<unsigned char>(c) >> 4];
          text_ += digits[static_cast<unsigned char>(c) & 0xf];
        } else {
          text_ += c;
        }
    }
  }
  text_ += '"';
}

}  // namespace millrace
