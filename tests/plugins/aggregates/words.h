// Commands and answers of the aggregates here: words.
#pragma once

#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/aggregate.h>

namespace millrace::examples {

inline std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const auto end = text.find(' ');
    if (end != 0) words.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return words;
}
inline std::string text_of(const Message& message) {
  return std::string(static_cast<const BytesMessage&>(message).bytes.text());
}
inline std::unique_ptr<Message> text(std::string_view words) {
  return std::make_unique<BytesMessage>(Buffer::copy_of(words));
}
inline std::int64_t number_of(std::string_view word) {
  std::int64_t number = -1;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

}  // namespace millrace::examples
