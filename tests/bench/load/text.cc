#include <array>

#include "load.h"

namespace millrace::bench {

std::string make_text(std::size_t bytes) {
  std::uint64_t state = 88172645463325252ULL;
  const auto next = [&state] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  std::array<std::string, 4096> words;
  for (auto& word : words) {
    const auto letters = 3 + next() % 6;
    for (std::uint64_t at = 0; at < letters; ++at) word += static_cast<char>('a' + next() % 26);
  }
  std::string text;
  text.reserve(bytes + 16);
  while (text.size() < bytes) {
    const auto chosen = next();
    if (chosen % 5 == 0) {
      text += std::to_string((chosen >> 20) % 1'000'000'007) + ',';
    } else {
      text += words[(chosen >> 8) % words.size()] + ' ';
    }
  }
  text.resize(bytes);
  return text;
}

}  // namespace millrace::bench
