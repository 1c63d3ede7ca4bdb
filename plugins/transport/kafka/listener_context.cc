#include "listener_context.h"

namespace millrace::kafka_transport {

TransportMetrics::TransportMetrics(Metrics& metrics)
    : connections(metrics.gauge("millrace_kafka_connections", "Open Kafka connections")),
      connections_refused(metrics.counter("millrace_kafka_connections_refused_total",
                                          "Connections closed because of max.connections")),
      requests(metrics.counter("millrace_kafka_requests_total", "Kafka requests begun")),
      bad_requests(metrics.counter("millrace_kafka_bad_requests_total",
                                   "Connections closed because of what was received")),
      stalled_readers(
          metrics.counter("millrace_kafka_stalled_readers_total",
                          "Connections closed because their unread answers held memory")),
      bytes_in(metrics.counter("millrace_kafka_bytes_in_total", "Bytes received")),
      bytes_out(metrics.counter("millrace_kafka_bytes_out_total", "Bytes sent")) {}

}  // namespace millrace::kafka_transport
