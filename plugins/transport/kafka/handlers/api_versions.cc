#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/kafka/api_versions.h>

#include "../api_set.h"
#include "../peer_link.h"
#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

/// KIP-511: letters and digits, with dots and dashes between them.
bool is_software_name(std::string_view text) {
  const auto alphanumeric = [](char c) {
    return ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z');
  };
  const auto allowed = [&](char c) { return alphanumeric(c) || c == '.' || c == '-'; };
  return !text.empty() && alphanumeric(text.front()) && alphanumeric(text.back()) &&
         std::ranges::all_of(text, allowed);
}

kafka::ApiVersionsResponse served(const ApiSet& apis, ErrorCode error, bool to_peer) {
  kafka::ApiVersionsResponse response;
  response.error_code = code_of(error);
  for (const auto& api : apis.all()) {
    if (api.info->is_private && !to_peer) continue;
    response.api_keys.emplace_back(static_cast<std::int16_t>(api.info->key), api.served.min,
                                   api.served.max);
  }
  return response;
}

/// Keeps what the client calls itself, which versions before KIP-511 do not tell.
ErrorCode note_software(ClientInfo& client, const kafka::ApiVersionsRequest& asked,
                        const ApiVersionsFeatures& features) {
  if (!features.software) return ErrorCode::none;
  const auto name = asked.client_software_name;
  const auto version = asked.client_software_version;
  if (!is_software_name(name) || !is_software_name(version)) return ErrorCode::invalid_request;
  client.software = std::string(name) + " " + std::string(version);
  return ErrorCode::none;
}

/// KIP-1242: a client that says whom it believes to talk to learns when that is another broker.
Task<ErrorCode> check_route(const Request& request, std::string cluster_id, std::int32_t node_id) {
  MetadataRequest ask_cluster{.topics = std::vector<TopicName>()};
  auto asking = request.broker.metadata(request.session, std::move(ask_cluster));
  MR_CO_TRY(const auto here, co_await std::move(asking));
  const bool meant = cluster_id == here.cluster_id && node_id == request.listener.node_id;
  co_return meant ? ErrorCode::none : ErrorCode::rebootstrap_required;
}

}  // namespace

Task<Payload> handle_api_versions(Request& request) {
  const auto& head = request.head;
  const auto& apis = request.listener.apis;
  if (!kafka::ApiVersionsRequest::message_versions.contains(head.version)) {
    // In the one version that every client can read; it then asks again with one that is listed,
    // which is all that it needs to know.
    auto response = served(apis, ErrorCode::unsupported_version, false);
    std::erase_if(response.api_keys, [&](const auto& api) {
      return api.api_key != static_cast<std::int16_t>(head.api->key);
    });
    co_return kafka::encode_response(0, head.correlation_id, response);
  }
  MR_CO_TRY(const auto asked, request.decode<kafka::ApiVersionsRequest>());
  auto error = note_software(request.client, asked, api_versions_features(head.version));
  if (error == ErrorCode::none && asked.cluster_id) {
    auto checking = check_route(request, std::string(*asked.cluster_id), asked.node_id);
    MR_CO_TRY(error, co_await std::move(checking));
  }
  co_return request.encode(served(apis, error, asked.client_software_name == peer_software));
}

}  // namespace millrace::kafka_transport
