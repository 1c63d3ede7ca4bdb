#include <string>
#include <utility>
#include <vector>

#include <millrace/kafka/describe_cluster.h>

#include "authorized_operations.h"
#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

/// KIP-919: which kind of endpoint the client believes to talk to.
constexpr std::int8_t endpoint_broker = 1;
constexpr std::int8_t endpoint_controller = 2;

Result<Payload> refuse(const Request& request, std::int8_t asked_type) {
  kafka::DescribeClusterResponse response;
  const bool known = asked_type == endpoint_controller;
  response.error_code =
      code_of(known ? ErrorCode::mismatched_endpoint_type : ErrorCode::unsupported_endpoint_type);
  response.error_message = known ? "This is a broker's endpoint, not a controller's."
                                 : "Endpoint types are 1 (broker) and 2 (controller).";
  return request.encode(response);
}

}  // namespace

Task<Payload> handle_describe_cluster(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::DescribeClusterRequest>());
  if (asked.endpoint_type != endpoint_broker) co_return refuse(request, asked.endpoint_type);
  const bool operations = asked.include_cluster_authorized_operations;
  MetadataRequest no_topics{.topics = std::vector<TopicName>()};
  auto describing = request.broker.metadata(request.session, std::move(no_topics));
  MR_CO_TRY(const auto cluster, co_await std::move(describing));
  kafka::DescribeClusterResponse response;
  response.cluster_id = cluster.cluster_id;
  response.controller_id = cluster.controller_id;
  for (const auto& broker : cluster.brokers) {
    // Only brokers that are alive are known; none of them is fenced.
    response.brokers.emplace_back(broker.id, broker.address.host, broker.address.port,
                                  unless_empty(broker.rack));
  }
  if (operations) response.cluster_authorized_operations = cluster_operations;
  co_return request.encode(response);
}

}  // namespace millrace::kafka_transport
