#include <string_view>

#include <millrace/kafka/find_coordinator.h>

#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

struct Found {
  ErrorCode error = ErrorCode::none;
  std::string_view message;
};

/// No service that coordinates anything can be loaded into this broker yet. Clients take the answer
/// for one that is starting up, and ask again.
Found find_coordinator(std::int8_t type, const CoordinatorFeatures& features) {
  if (type < 0 || type > features.type_max) {
    return {ErrorCode::invalid_request,
            "This most likely occurs because of a request being malformed by the client library or "
            "the message was sent to an incompatible broker. See the broker logs for more "
            "details."};
  }
  return {ErrorCode::coordinator_not_available, "no coordinator service is loaded"};
}

}  // namespace

Task<Payload> handle_find_coordinator(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::FindCoordinatorRequest>());
  const auto features = coordinator_features(request.head.version);
  const auto found = find_coordinator(asked.key_type, features);

  kafka::FindCoordinatorResponse response;
  if (features.many_keys) {
    for (const auto key : asked.coordinator_keys) {
      auto& coordinator = response.coordinators.emplace_back();
      coordinator.key = key;
      coordinator.node_id = -1;
      coordinator.port = -1;
      coordinator.error_code = code_of(found.error);
      coordinator.error_message = found.message;
    }
  } else {
    response.node_id = -1;
    response.port = -1;
    response.error_code = code_of(found.error);
    response.error_message = found.message;
  }
  co_return request.encode(response);
}

}  // namespace millrace::kafka_transport
