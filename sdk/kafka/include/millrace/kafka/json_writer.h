// Text in Kafka's own JSON form: int64 as plain numbers, bytes and records in base64, ids in
// base64url. The generated printers are its only caller.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/kafka/message.h>

namespace millrace::kafka {

class JsonWriter {
 public:
  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array(std::string_view name) {
    this->name(name);
    open('[');
  }
  void end_array() { close(']'); }

  /// Field names are ours and need no escapes.
  void name(std::string_view name);
  void null_field(std::string_view name) {
    this->name(name);
    text("null");
  }
  template <class T>
  void field(std::string_view name, const T& value) {
    this->name(name);
    this->value(value);
  }

  std::string finish() && { return std::move(out_); }

 private:
  void open(char bracket);
  void close(char bracket);
  /// Before a value: a comma unless it is the first of its array, or follows its name.
  void separate();
  void text(std::string_view literal);

  void value(bool value) { text(value ? "true" : "false"); }
  template <std::integral T>
  void value(T value) {
    text(std::to_string(value));
  }
  void value(double value);
  void value(std::string_view value);
  void value(const Uuid& value);
  void value(const Buffer& value);
  void value(const Payload& value);
  template <class T>
  void value(const std::optional<T>& value) {
    if (!value) return text("null");
    this->value(*value);
  }
  template <class T>
  void value(const std::vector<T>& values) {
    open('[');
    for (const auto& element : values) value(element);
    close(']');
  }

  std::string out_;
  bool first_ = true;  // nothing stands yet in the innermost bracket, or only a name
};

}  // namespace millrace::kafka
