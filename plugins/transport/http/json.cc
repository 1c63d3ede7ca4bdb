#include "json.h"

#include <string>
#include <utility>

#include <boost/json/serialize.hpp>

#include <millrace/utf8.h>

namespace millrace::http_transport {
namespace {

unsigned status_of(ErrorCode error) {
  switch (error) {
    case ErrorCode::unknown_topic_or_partition:
    case ErrorCode::unknown_topic_id:
    case ErrorCode::group_id_not_found:
    case ErrorCode::resource_not_found: return 404;
    case ErrorCode::topic_already_exists:
    case ErrorCode::non_empty_group:
    case ErrorCode::invalid_update_version: return 409;
    case ErrorCode::invalid_topic_exception:
    case ErrorCode::invalid_partitions:
    case ErrorCode::invalid_replication_factor:
    case ErrorCode::invalid_replica_assignment:
    case ErrorCode::invalid_config:
    case ErrorCode::invalid_request:
    case ErrorCode::invalid_group_id:
    case ErrorCode::policy_violation: return 400;
    case ErrorCode::topic_authorization_failed:
    case ErrorCode::cluster_authorization_failed:
    case ErrorCode::topic_deletion_disabled: return 403;
    case ErrorCode::request_timed_out: return 504;
    default: return is_retriable(error) ? 503 : 500;
  }
}

}  // namespace

HttpResponse json_response(const boost::json::value& value, unsigned status) {
  // Names come from clients and paths, and may be any bytes; they stand in the texts alone.
  return {.status = status, .body = utf8_of(boost::json::serialize(value)) + '\n'};
}

HttpResponse error_response(unsigned status, std::string_view error, std::string_view message) {
  return json_response({{"error", error}, {"message", message}}, status);
}

HttpResponse error_response(ErrorCode error, std::string_view message) {
  const auto name = name_of(error);
  return error_response(status_of(error), name, message.empty() ? name : message);
}

HttpResponse bad_body(const Error& error) {
  return error_response(400, "invalid_body", error.detail);
}

}  // namespace millrace::http_transport
