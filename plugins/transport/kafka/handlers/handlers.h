// One function per API: decodes a request, calls the broker, encodes the answer. An empty payload
// means that nothing is sent. An error ends the connection after earlier answers: Errc::corrupt or
// unsupported when the client is to blame, closed when nothing is to be said about it. Errors of
// single topics or partitions stay inside the answer.  [the connection's shard]
#pragma once

#include <cstdint>

#include <millrace/payload.h>
#include <millrace/task.h>

#include "../request.h"
#include "../version_facts.h"

namespace millrace::kafka_transport {

using Handler = Task<Payload> (*)(Request& request);

Task<Payload> handle_alter_configs(Request& request);
Task<Payload> handle_alter_partition(Request& request);
Task<Payload> handle_alter_partition_reassignments(Request& request);
Task<Payload> handle_api_versions(Request& request);
Task<Payload> handle_cluster_update(Request& request);
Task<Payload> handle_consumer_group_describe(Request& request);
Task<Payload> handle_consumer_group_heartbeat(Request& request);
Task<Payload> handle_controlled_shutdown(Request& request);
Task<Payload> handle_create_partitions(Request& request);
Task<Payload> handle_create_topics(Request& request);
Task<Payload> handle_delete_groups(Request& request);
Task<Payload> handle_delete_records(Request& request);
Task<Payload> handle_delete_topics(Request& request);
Task<Payload> handle_describe_cluster(Request& request);
Task<Payload> handle_describe_configs(Request& request);
Task<Payload> handle_describe_groups(Request& request);
Task<Payload> handle_describe_log_dirs(Request& request);
Task<Payload> handle_describe_producers(Request& request);
Task<Payload> handle_describe_topic_partitions(Request& request);
Task<Payload> handle_elect_leaders(Request& request);
Task<Payload> handle_fetch(Request& request);
Task<Payload> handle_find_coordinator(Request& request);
Task<Payload> handle_heartbeat(Request& request);
Task<Payload> handle_incremental_alter_configs(Request& request);
Task<Payload> handle_init_producer_id(Request& request);
Task<Payload> handle_join_group(Request& request);
Task<Payload> handle_leave_group(Request& request);
Task<Payload> handle_list_config_resources(Request& request);
Task<Payload> handle_list_groups(Request& request);
Task<Payload> handle_list_offsets(Request& request);
Task<Payload> handle_list_partition_reassignments(Request& request);
Task<Payload> handle_metadata(Request& request);
Task<Payload> handle_offset_commit(Request& request);
Task<Payload> handle_offset_delete(Request& request);
Task<Payload> handle_offset_fetch(Request& request);
Task<Payload> handle_offset_for_leader_epoch(Request& request);
Task<Payload> handle_produce(Request& request);
Task<Payload> handle_sync_group(Request& request);

}  // namespace millrace::kafka_transport
