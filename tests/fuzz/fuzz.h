// What every driver needs: its one function, and a way to say that something does not hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <millrace/buffer.h>
#include <millrace/result.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace millrace::fuzz {

/// Ends the run; the input is kept.
inline void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what.c_str());
  std::abort();
}

template <class T>
T need(Result<T> result, const std::string& what) {
  if (!result) require(false, what + ": " + to_string(result.error()));
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// Takes numbers from the front of an input that choose what the rest is for.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const std::byte*>(data), size) {}

  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto first = std::to_integer<std::uint8_t>(rest_.front());
    rest_ = rest_.subspan(1);
    return first;
  }
  Bytes rest() const { return rest_; }
  std::string_view text() const { return as_text(rest_); }
  /// A copy of exactly these bytes, so that reading behind them is seen.
  Buffer buffer() const { return Buffer::copy_of(rest_); }

 private:
  Bytes rest_;
};

}  // namespace millrace::fuzz
