// One function per route. What a request asks wrongly is in the answer; an error means that the
// broker is stopping.  [connection's shard]
#pragma once

#include "../exchange.h"

namespace millrace::http_transport {

// health.cc, metrics.cc
Task<HttpResponse> handle_health(Exchange& exchange);
Task<HttpResponse> handle_metrics(Exchange& exchange);

// topics.cc
Task<HttpResponse> handle_list_topics(Exchange& exchange);
Task<HttpResponse> handle_create_topic(Exchange& exchange);
Task<HttpResponse> handle_show_topic(Exchange& exchange);
Task<HttpResponse> handle_grow_topic(Exchange& exchange);
Task<HttpResponse> handle_delete_topic(Exchange& exchange);

// groups.cc
Task<HttpResponse> handle_list_groups(Exchange& exchange);
Task<HttpResponse> handle_show_group(Exchange& exchange);
Task<HttpResponse> handle_delete_group(Exchange& exchange);

// streams.cc
Task<HttpResponse> handle_list_streams(Exchange& exchange);
Task<HttpResponse> handle_create_stream(Exchange& exchange);
Task<HttpResponse> handle_show_stream(Exchange& exchange);
Task<HttpResponse> handle_delete_stream(Exchange& exchange);
Task<HttpResponse> handle_start_stream(Exchange& exchange);
Task<HttpResponse> handle_stop_stream(Exchange& exchange);
Task<HttpResponse> handle_replace_operator(Exchange& exchange);

// aggregates.cc
Task<HttpResponse> handle_list_aggregates(Exchange& exchange);
Task<HttpResponse> handle_replace_aggregate(Exchange& exchange);
Task<HttpResponse> handle_command(Exchange& exchange);
Task<HttpResponse> handle_query(Exchange& exchange);

// configs.cc
Task<HttpResponse> handle_topic_configs(Exchange& exchange);
Task<HttpResponse> handle_change_topic_configs(Exchange& exchange);
Task<HttpResponse> handle_broker_configs(Exchange& exchange);
Task<HttpResponse> handle_change_broker_configs(Exchange& exchange);

// brokers.cc
Task<HttpResponse> handle_brokers(Exchange& exchange);
Task<HttpResponse> handle_plugins(Exchange& exchange);
Task<HttpResponse> handle_config(Exchange& exchange);
Task<HttpResponse> handle_log_levels(Exchange& exchange);
Task<HttpResponse> handle_change_log_level(Exchange& exchange);

}  // namespace millrace::http_transport
