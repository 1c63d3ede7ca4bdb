// What all connections of a listener share.
#pragma once

#include <cstdint>
#include <string>

#include <millrace/broker.h>
#include <millrace/observe.h>

#include "settings.h"

namespace millrace::kafka_transport {

class ApiSet;

/// [any thread]
struct TransportMetrics {
  explicit TransportMetrics(Metrics& metrics);
  Gauge& connections;
  Counter& connections_refused;
  Counter& requests;
  Counter& bad_requests;
  Counter& stalled_readers;
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
};

}  // namespace millrace::kafka_transport
