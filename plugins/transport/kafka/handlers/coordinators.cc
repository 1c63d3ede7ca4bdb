#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/groups.h>
#include <millrace/kafka/find_coordinator.h>

#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

constexpr std::int8_t type_group = 0;

struct Found {
  ErrorCode error = ErrorCode::none;
  std::string message;
  std::int32_t broker = -1;
  Address address{"", 0};
};

Found not_found(ErrorCode error, std::string message) {
  return {error, std::move(message), -1, {"", 0}};
}

/// What needs no look-up: a type that the version does not have, or that nobody coordinates.
std::optional<Found> refuse(const Request& request, std::int8_t type) {
  if (type < 0 || type > coordinator_features(request.head.version).type_max) {
    return not_found(
        ErrorCode::invalid_request,
        "This most likely occurs because of a request being malformed by the client library or "
        "the message was sent to an incompatible broker. See the broker logs for more details.");
  }
  if (type == type_group && request.listener.groups) return std::nullopt;
  return not_found(ErrorCode::coordinator_not_available, "no coordinator service is loaded");
}

/// Where clients of this listener reach the broker that has the group.
Task<Found> find_group(const Request& request, std::string group) {
  auto asking = request.listener.groups->coordinator(std::move(group));
  MR_CO_TRY(auto coordinator, co_await std::move(asking));
  if (coordinator.error != ErrorCode::none) {
    co_return not_found(coordinator.error, std::move(coordinator.message));
  }
  MetadataRequest no_topics{.topics = std::vector<TopicName>()};
  auto describing = request.broker.metadata(request.session, std::move(no_topics));
  MR_CO_TRY(const auto cluster, co_await std::move(describing));
  const auto at = std::ranges::find(cluster.brokers, coordinator.broker, &BrokerInfo::id);
  if (at == cluster.brokers.end()) {
    co_return not_found(
        ErrorCode::coordinator_not_available,
        "broker " + std::to_string(coordinator.broker) + " has the group and is not alive");
  }
  co_return Found{ErrorCode::none, {}, at->id, at->address};
}

Result<Payload> write_one(const Request& request, const Found& found) {
  kafka::FindCoordinatorResponse response;
  response.error_code = code_of(found.error);
  // Where nothing is wrong, Kafka says so in as many words, in these versions alone.
  response.error_message =
      found.error == ErrorCode::none ? name_of(found.error) : bounded_message(found.message);
  response.node_id = found.broker;
  response.host = found.address.host;
  response.port = found.broker < 0 ? -1 : found.address.port;
  return request.encode(response);
}

}  // namespace

Task<Payload> handle_find_coordinator(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::FindCoordinatorRequest>());
  const bool many = coordinator_features(request.head.version).many_keys;
  std::vector<std::string_view> keys = asked.coordinator_keys;
  if (!many) keys.assign(1, asked.key);
  const auto refused = refuse(request, asked.key_type);
  std::vector<Found> found;
  for (const auto key : keys) {
    if (refused) {
      found.push_back(*refused);
      continue;
    }
    auto finding = find_group(request, std::string(key));
    MR_CO_TRY(auto one, co_await std::move(finding));
    found.push_back(std::move(one));
  }
  if (!many) co_return write_one(request, found.front());

  kafka::FindCoordinatorResponse response;
  for (std::size_t at = 0; at < found.size(); ++at) {
    const auto& one = found[at];
    auto& coordinator = response.coordinators.emplace_back();
    coordinator.key = keys[at];
    coordinator.node_id = one.broker;
    coordinator.host = one.address.host;
    coordinator.port = one.broker < 0 ? -1 : one.address.port;
    coordinator.error_code = code_of(one.error);
    coordinator.error_message = bounded_message(one.message);
  }
  co_return request.encode(response);
}

}  // namespace millrace::kafka_transport
