#include "golden_file.h"

#include <array>
#include <memory>

#include <zlib.h>

namespace millrace::wire {

namespace {

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

struct CloseGzip {
  void operator()(gzFile file) const noexcept { gzclose(file); }
};

}  // namespace

Result<Buffer> read_file(const std::string& path) {
  // Reads a file that is not gzipped as it is.
  const std::unique_ptr<gzFile_s, CloseGzip> file(gzopen(path.c_str(), "rb"));
  if (!file) return Error{Errc::io, path + ": cannot be opened"};
  std::string content;
  std::array<char, 65536> chunk;
  int taken = 0;
  while ((taken = gzread(file.get(), chunk.data(), chunk.size())) > 0) {
    content.append(chunk.data(), static_cast<std::size_t>(taken));
  }
  int code = Z_OK;
  const std::string why = gzerror(file.get(), &code);
  if (taken < 0 || code != Z_OK) return Error{Errc::io, path + ": cannot be read: " + why};
  return Buffer::copy_of(content);
}

Result<> for_each_line(const std::string& path, const std::function<void(std::string_view)>& use) {
  MR_TRY(const auto content, read_file(path));
  for (auto left = content.text(); !left.empty();) {
    const auto end = std::min(left.find('\n'), left.size());
    if (end > 0) use(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return {};
}

Result<Buffer> parse_hex(std::string_view hex) {
  const auto value_of = [](char digit) -> int {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
    return -1;
  };
  if (hex.size() % 2 != 0) return Error{Errc::invalid_argument, "hex of an odd length"};
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (std::size_t at = 0; at < hex.size(); at += 2) {
    const auto high = value_of(hex[at]);
    const auto low = value_of(hex[at + 1]);
    if (high < 0 || low < 0) {
      return Error{Errc::invalid_argument, "no hex digit at character " + std::to_string(at)};
    }
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return Buffer::copy_of(bytes);
}

std::string to_base64(Bytes bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto taken = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t three = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      three = three << 8 | (i < taken ? std::to_integer<std::uint32_t>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= taken ? base64_digits[three >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

Buffer from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t gathered = 0;
  int bits = 0;
  for (const auto digit : text) {
    const auto value = base64_digits.find(digit);
    if (value == std::string_view::npos) break;  // the padding
    gathered = gathered << 6 | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<char>(gathered >> bits & 0xff));
  }
  return Buffer::copy_of(bytes);
}

}  // namespace millrace::wire
