#include "metadata_hash.h"

#include <algorithm>
#include <bit>
#include <concepts>
#include <string_view>
#include <vector>

#include <xxhash.h>

#include <millrace/bytes.h>
#include <millrace/utf8.h>

namespace millrace::consumer_groups {
namespace {

static_assert(std::endian::native == std::endian::little);

/// The bytes that are hashed, as Kafka's hash library writes them: little-endian integers, strings
/// as UTF-16 with their length behind.
class HashInput {
 public:
  void put(std::integral auto value) {
    const auto* bytes = reinterpret_cast<const char*>(&value);
    bytes_.append(bytes, sizeof value);
  }
  void put(std::u16string_view text) {
    for (const char16_t unit : text) put(static_cast<std::uint16_t>(unit));
    put(static_cast<std::int32_t>(text.size()));
  }
  std::int64_t hash() const {
    return static_cast<std::int64_t>(XXH3_64bits(bytes_.data(), bytes_.size()));
  }

 private:
  std::string bytes_;
};

/// What is not UTF-8 becomes U+FFFD byte by byte, so that any name has a hash.
std::u16string utf16(std::string_view text) {
  std::u16string units;
  while (!text.empty()) {
    const auto [point, bytes] = first_code_point(text);
    text.remove_prefix(bytes);
    if (point >= 0x10000) {
      units.push_back(static_cast<char16_t>(0xd800 + ((point - 0x10000) >> 10)));
      units.push_back(static_cast<char16_t>(0xdc00 + ((point - 0x10000) & 0x3ff)));
    } else {
      units.push_back(static_cast<char16_t>(point));
    }
  }
  return units;
}

}  // namespace

std::int64_t topic_hash(const ClusterTopic& topic) {
  HashInput input;
  input.put(std::int8_t{0});  // the layout that follows
  input.put(load_be<std::int64_t>(reinterpret_cast<const std::byte*>(topic.id.bytes.data())));
  input.put(load_be<std::int64_t>(reinterpret_cast<const std::byte*>(topic.id.bytes.data() + 8)));
  input.put(utf16(topic.name));
  input.put(topic.partitions());
  for (std::int32_t partition = 0; partition < topic.partitions(); ++partition) {
    input.put(partition);
    std::vector<std::u16string> racks;
    for (const auto& rack : topic.racks[static_cast<std::size_t>(partition)]) {
      if (!rack.empty()) racks.push_back(utf16(rack));
    }
    std::ranges::sort(racks);
    for (const auto& rack : racks) {
      input.put(static_cast<std::int32_t>(rack.size()));
      input.put(rack);
    }
  }
  return input.hash();
}

std::int64_t metadata_hash(const std::set<std::string, std::less<>>& topics,
                           const ClusterView& cluster) {
  HashInput input;
  bool any = false;
  for (const auto& name : topics) {
    if (const ClusterTopic* topic = cluster.find(name)) {
      input.put(topic_hash(*topic));
      any = true;
    }
  }
  return any ? input.hash() : 0;
}

}  // namespace millrace::consumer_groups
