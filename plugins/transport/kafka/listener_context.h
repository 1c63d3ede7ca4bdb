// What all connections of a listener share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/broker.h>
#include <millrace/groups.h>
#include <millrace/kafka/api_key.h>
#include <millrace/observe.h>
#include <millrace/peers.h>

#include "settings.h"

namespace millrace::kafka_transport {

struct Api;
class ApiSet;
class LostBrokers;

/// [any thread]
struct ApiMetrics {
  Counter& requests;
  Histogram& took;  ///< from the request being read to its answer being ready
};

/// [any thread]
class TransportMetrics {
 public:
  TransportMetrics(Metrics& metrics, const ApiSet& apis);

  const ApiMetrics& of(const Api& api) const noexcept;
  /// One error code in an answer. Looks its series up: errors are rare, or look so in a graph.
  void count_error(kafka::ApiKey api, ErrorCode error);

 private:
  Metrics& metrics_;
  const ApiSet& apis_;
  std::vector<ApiMetrics> by_api_;  // in the order of apis_

 public:
  Gauge& connections;
  Counter& accepted;
  // connections that were closed here, and why
  Counter& connections_refused;
  Counter& bad_requests;
  Counter& bombs;
  Counter& idle;
  Counter& stalled_readers;
  Counter& slow_senders;
  Counter& bytes_in;
  Counter& bytes_out;
};

/// Outlives the connections.
struct ListenerContext {
  const Settings& settings;
  const ApiSet& apis;
  Broker& broker;
  Log log;
  TransportMetrics& metrics;
  std::string listener;
  std::int32_t node_id = -1;  ///< this broker's
  // where there is none, no API that needs it is in `apis`
  GroupService* groups = nullptr;
  ClusterService* cluster = nullptr;
  LostBrokers* lost = nullptr;  ///< none: nobody else is reached through this transport
};

}  // namespace millrace::kafka_transport
