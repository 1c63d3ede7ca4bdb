// JSON as text, from its tokens.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <millrace/fields/json_walk.h>

namespace millrace {

/// Without spaces. Begins anew after take().
class JsonText final : public JsonEvents {
 public:
  void begin_object() override { begin('{'); }
  void end_object() override { end('}'); }
  void begin_array() override { begin('['); }
  void end_array() override { end(']'); }
  void key(std::string_view name) override;
  void string(std::string_view text) override;
  void literal(std::string_view text) override;

  bool empty() const noexcept { return text_.empty(); }
  const std::string& text() const noexcept { return text_; }
  std::string take() { return std::exchange(text_, {}); }
  void clear() noexcept { text_.clear(); }

 private:
  void begin(char bracket);
  void end(char bracket);
  void separate();
  void quote(std::string_view text);

  std::string text_;
};

}  // namespace millrace
