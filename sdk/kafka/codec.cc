#include <millrace/kafka/codec.h>

#include <string>

namespace millrace::kafka {
namespace detail {

Result<> check_version(std::string_view message, VersionRange versions, std::int16_t version) {
  if (versions.contains(version)) return {};
  return Error{Errc::unsupported, std::string(message) + " version " + std::to_string(version) +
                                      ": known are " + std::to_string(versions.min) + " to " +
                                      std::to_string(versions.max)};
}

void begin_request(WireWriter& out, ApiKey api, std::int16_t version, std::int32_t correlation_id,
                   std::string_view client_id) {
  RequestHeader header;
  header.request_api_key = static_cast<std::int16_t>(api);
  header.request_api_version = version;
  header.correlation_id = correlation_id;
  const auto header_version = info_of(api).request_header_version(version);
  if (header_version > 0) header.client_id = client_id;
  out.write(std::int32_t{0});  // the size
  write(out, header_version, header);
}

void begin_response(WireWriter& out, ApiKey api, std::int16_t version,
                    std::int32_t correlation_id) {
  ResponseHeader header;
  header.correlation_id = correlation_id;
  out.write(std::int32_t{0});  // the size
  write(out, info_of(api).response_header_version(version), header);
}

}  // namespace detail

namespace {

/// Of an ApiVersions request from the future only the beginning is sure, and it is answered all the
/// same (KIP-511).
std::int16_t readable_header_version(const ApiInfo& api, std::int16_t version) noexcept {
  if (api.key == ApiKey::api_versions && version > api.known.max) return 0;
  return api.request_header_version(version);
}

}  // namespace

Result<RequestHead> decode_request_head(Buffer frame) {
  if (frame.size() < 4) return Error{Errc::corrupt, "request of fewer than 4 bytes"};
  const auto key = load_be<std::int16_t>(frame.data());
  const auto version = load_be<std::int16_t>(frame.data() + 2);
  const auto* api = find_api(key);
  if (!api) return Error{Errc::unsupported, "API key " + std::to_string(key)};
  WireReader in(std::move(frame));
  RequestHeader header;
  read(in, readable_header_version(*api, version), header);
  MR_CHECK(in.finish());
  return RequestHead{api, version, header.correlation_id, header.client_id, in.rest()};
}

}  // namespace millrace::kafka
