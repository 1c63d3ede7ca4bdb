// Which APIs there are, in which versions, and which header stands in front of each.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <millrace/kafka/api_key.h>
#include <millrace/kafka/message.h>

namespace millrace::kafka {

struct ApiInfo {
  ApiKey key;
  std::string_view name;  ///< "Fetch"
  VersionRange known;     ///< what can be read and written
  VersionRange served;  ///< what a broker should offer: without unstable and early-access versions
  std::int16_t flexible_from;
  bool is_private;  ///< between brokers of Millrace alone: ApiVersions tells nobody else of it

  /// Of RequestHeader and ResponseHeader. Also for versions that are not known, so that an
  /// ApiVersions request from the future can be answered.
  std::int16_t request_header_version(std::int16_t version) const noexcept;
  std::int16_t response_header_version(std::int16_t version) const noexcept;
};

/// In ascending order of keys.
std::span<const ApiInfo> api_table() noexcept;
/// nullptr when there is no such API.
const ApiInfo* find_api(std::int16_t key) noexcept;
/// Of a key that exists.
const ApiInfo& info_of(ApiKey key) noexcept;

}  // namespace millrace::kafka
