#include "api_set.h"

#include <algorithm>
#include <string>

#include <millrace/groups.h>
#include <millrace/peers.h>

namespace millrace::kafka_transport {

namespace {

/// Answered when others have come, so perhaps never.
constexpr bool waits_for_others(kafka::ApiKey key) {
  using kafka::ApiKey;
  return key == ApiKey::fetch || key == ApiKey::join_group || key == ApiKey::sync_group ||
         key == ApiKey::metadata;
}

}  // namespace

ApiSet::ApiSet(Broker& broker) {
  using kafka::ApiKey;
  const auto serve = [this](ApiKey key, Handler handler) {
    const auto& info = kafka::info_of(key);
    apis_.push_back({.info = &info, .served = info.served, .handler = handler});
  };
  serve(ApiKey::produce, handle_produce);
  serve(ApiKey::fetch, handle_fetch);
  serve(ApiKey::list_offsets, handle_list_offsets);
  serve(ApiKey::metadata, handle_metadata);
  serve(ApiKey::find_coordinator, handle_find_coordinator);
  serve(ApiKey::api_versions, handle_api_versions);
  serve(ApiKey::create_topics, handle_create_topics);
  serve(ApiKey::delete_topics, handle_delete_topics);
  serve(ApiKey::delete_records, handle_delete_records);
  serve(ApiKey::init_producer_id, handle_init_producer_id);
  serve(ApiKey::offset_for_leader_epoch, handle_offset_for_leader_epoch);
  serve(ApiKey::describe_configs, handle_describe_configs);
  serve(ApiKey::alter_configs, handle_alter_configs);
  serve(ApiKey::describe_log_dirs, handle_describe_log_dirs);
  serve(ApiKey::create_partitions, handle_create_partitions);
  serve(ApiKey::incremental_alter_configs, handle_incremental_alter_configs);
  serve(ApiKey::describe_cluster, handle_describe_cluster);
  serve(ApiKey::describe_producers, handle_describe_producers);
  serve(ApiKey::list_config_resources, handle_list_config_resources);
  serve(ApiKey::describe_topic_partitions, handle_describe_topic_partitions);
  serve(ApiKey::elect_leaders, handle_elect_leaders);
  serve(ApiKey::alter_partition_reassignments, handle_alter_partition_reassignments);
  serve(ApiKey::list_partition_reassignments, handle_list_partition_reassignments);
  if (broker.service<ClusterService>()) {
    serve(ApiKey::controlled_shutdown, handle_controlled_shutdown);
    serve(ApiKey::alter_partition, handle_alter_partition);
    serve(ApiKey::cluster_update, handle_cluster_update);
  }
  if (broker.service<GroupService>()) {
    serve(ApiKey::offset_commit, handle_offset_commit);
    serve(ApiKey::offset_fetch, handle_offset_fetch);
    serve(ApiKey::join_group, handle_join_group);
    serve(ApiKey::heartbeat, handle_heartbeat);
    serve(ApiKey::leave_group, handle_leave_group);
    serve(ApiKey::sync_group, handle_sync_group);
    serve(ApiKey::describe_groups, handle_describe_groups);
    serve(ApiKey::list_groups, handle_list_groups);
    serve(ApiKey::delete_groups, handle_delete_groups);
    serve(ApiKey::offset_delete, handle_offset_delete);
    serve(ApiKey::consumer_group_heartbeat, handle_consumer_group_heartbeat);
    serve(ApiKey::consumer_group_describe, handle_consumer_group_describe);
  }
  std::ranges::sort(apis_, {}, [](const Api& api) { return api.info->key; });
  for (auto& api : apis_) {
    api.polls = waits_for_others(api.info->key);
    const auto key = static_cast<std::size_t>(api.info->key);
    by_key_.resize(key + 1);
    by_key_[key] = &api;
  }
}

Result<const Api*> ApiSet::find(std::int16_t key, std::int16_t version) const {
  const auto place = static_cast<std::size_t>(key);
  const auto* at = key >= 0 && place < by_key_.size() ? by_key_[place] : nullptr;
  if (!at) {
    const auto* known = kafka::find_api(key);
    return Error{Errc::unsupported,
                 "API key " + std::to_string(key) +
                     (known ? " (" + std::string(known->name) + ")" : std::string()) +
                     " is not served; ApiVersions lists what is"};
  }
  if (at->served.contains(version) || at->info->key == kafka::ApiKey::api_versions) return at;
  return Error{Errc::unsupported, std::string(at->info->name) + " version " +
                                      std::to_string(version) + " is not served; served are " +
                                      std::to_string(at->served.min) + " to " +
                                      std::to_string(at->served.max)};
}

}  // namespace millrace::kafka_transport
