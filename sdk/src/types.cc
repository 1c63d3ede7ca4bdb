#include <millrace/types.h>

#include <array>

namespace millrace {

namespace {
constexpr std::string_view base64url =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t uuid_text_chars = 22;
}  // namespace

std::string to_string(const Uuid& id) {
  std::string text;
  text.reserve(uuid_text_chars);
  for (std::size_t bit = 0; bit < 128; bit += 6) {
    unsigned six = 0;
    for (std::size_t i = bit; i < bit + 6; ++i) {
      const unsigned one = i < 128 ? (id.bytes[i / 8] >> (7 - i % 8)) & 1U : 0U;
      six = six << 1 | one;
    }
    text.push_back(base64url[six]);
  }
  return text;
}

std::optional<Uuid> parse_uuid(std::string_view text) {
  if (text.size() != uuid_text_chars) return std::nullopt;
  Uuid id;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto six = base64url.find(text[at]);
    if (six == std::string_view::npos) return std::nullopt;
    for (std::size_t i = 0; i < 6; ++i) {
      const auto bit = at * 6 + i;
      const auto one = (six >> (5 - i)) & 1U;
      if (bit < 128) {
        id.bytes[bit / 8] = static_cast<std::uint8_t>(id.bytes[bit / 8] | one << (7 - bit % 8));
      } else if (one) {
        return std::nullopt;
      }
    }
  }
  return id;
}

std::string to_string(const TopicPartition& partition) {
  return partition.topic + "-" + std::to_string(partition.partition);
}

std::string_view name_of(CompressionId id) noexcept {
  static constexpr std::array<std::string_view, 5> names{"none", "gzip", "snappy", "lz4", "zstd"};
  const auto at = static_cast<std::size_t>(id);
  return at < names.size() ? names[at] : "unknown";
}

}  // namespace millrace
