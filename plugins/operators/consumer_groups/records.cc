#include "records.h"

#include <algorithm>
#include <string>

namespace millrace::consumer_groups {
namespace detail {

Result<Buffer> with_version(std::int16_t version, const Payload& body) {
  MR_TRY(const auto content, body.flatten());
  MutableBuffer out(sizeof version + content.size());
  store_be(out.space().data(), version);
  out.filled(sizeof version);
  out.append(content);
  return std::move(out).freeze();
}

Result<std::int16_t> version_of(Bytes bytes) {
  if (bytes.size() < sizeof(std::int16_t)) {
    return Error{Errc::corrupt, "a record of " + std::to_string(bytes.size()) +
                                    " bytes, which has no room for its version"};
  }
  return load_be<std::int16_t>(bytes.data());
}

}  // namespace detail

Result<RecordKind> kind_of(Bytes key) {
  MR_TRY(const auto number, detail::version_of(key));
  return static_cast<RecordKind>(number);
}

Result<std::string> group_of(Bytes key) {
  // The group comes first in all of them.
  MR_TRY(const auto decoded, decode_key<kafka::GroupMetadataKey>(key));
  return std::string(decoded.group);
}

std::optional<std::vector<std::string>> subscribed_topics(const Buffer& subscription) {
  // A newer version has its fields behind those of the older ones.
  const auto version = detail::version_of(subscription);
  if (!version || *version < 0) return std::nullopt;
  const auto known = std::min(*version, kafka::ConsumerProtocolSubscription::message_versions.max);
  const auto decoded =
      kafka::decode<kafka::ConsumerProtocolSubscription>(subscription.slice(2), known);
  if (!decoded) return std::nullopt;
  return std::vector<std::string>(decoded->topics.begin(), decoded->topics.end());
}

}  // namespace millrace::consumer_groups
