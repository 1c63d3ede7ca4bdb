// What other brokers of the cluster ask.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <millrace/kafka/controlled_shutdown.h>

#include "../cluster_messages.h"
#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

/// Newer versions have ids alone; the service is told the names that this broker knows them by.
Task<> add_names(const Request& request, std::vector<InSyncChange>& changes) {
  std::set<Uuid> nameless;
  for (const auto& change : changes) {
    if (change.partition.topic.empty()) nameless.insert(change.topic_id);
  }
  if (nameless.empty()) co_return {};
  MetadataRequest ask_names{.topics = std::vector<TopicName>()};
  for (const auto& id : nameless) ask_names.topics->push_back({{}, id});
  auto asking = request.broker.metadata(request.session, std::move(ask_names));
  MR_CO_TRY(const auto known, co_await std::move(asking));
  std::map<Uuid, std::string> names;
  for (const auto& topic : known.topics) names.emplace(topic.topic.id, topic.topic.name);
  for (auto& change : changes) {
    const auto found = names.find(change.topic_id);
    if (change.partition.topic.empty() && found != names.end()) {
      change.partition.topic = found->second;
    }
  }
  co_return {};
}

}  // namespace

Task<Payload> handle_cluster_update(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::ClusterUpdateRequest>());
  auto updating = request.listener.cluster->update(read_update(asked));
  MR_CO_TRY(const auto updated, co_await std::move(updating));
  co_return request.encode(write_updated(updated));
}

Task<Payload> handle_alter_partition(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::AlterPartitionRequest>());
  auto changes = read_changes(asked);
  MR_CO_CHECK(co_await add_names(request, changes));
  auto changing =
      request.listener.cluster->change_in_sync(asked.broker_id, asked.broker_epoch, changes);
  MR_CO_TRY(const auto changed, co_await std::move(changing));
  co_return request.encode(write_changed(changed, changes));
}

Task<Payload> handle_controlled_shutdown(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::ControlledShutdownRequest>());
  auto moving = request.listener.cluster->shut_down(asked.broker_id, asked.broker_epoch);
  MR_CO_TRY(const auto moved, co_await std::move(moving));
  kafka::ControlledShutdownResponse response;
  response.error_code = code_of(moved.error);
  for (const auto& partition : moved.remaining) {
    auto& remaining = response.remaining_partitions.emplace_back();
    remaining.topic_name = partition.topic;
    remaining.partition_index = partition.partition;
  }
  co_return request.encode(response);
}

}  // namespace millrace::kafka_transport
