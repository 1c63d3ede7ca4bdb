#include "listener_context.h"

#include <utility>

#include <millrace/kafka/api.h>

#include "api_set.h"

namespace millrace::kafka_transport {
namespace {

Counter& closed(Metrics& metrics, const char* reason) {
  return metrics.counter("millrace_kafka_connections_closed_total",
                         "Connections that the broker closed, by reason", {{"reason", reason}});
}

MetricLabels label_of(std::string_view api) { return {{"api", std::string(api)}}; }

}  // namespace

TransportMetrics::TransportMetrics(Metrics& metrics, const ApiSet& apis)
    : metrics_(metrics),
      apis_(apis),
      connections(metrics.gauge("millrace_kafka_connections", "Open connections")),
      accepted(metrics.counter("millrace_kafka_connections_accepted_total",
                               "Connections that clients have opened")),
      connections_refused(closed(metrics, "too_many")),
      bad_requests(closed(metrics, "bad_request")),
      bombs(closed(metrics, "decompression_bomb")),
      idle(closed(metrics, "idle")),
      stalled_readers(closed(metrics, "stalled_reader")),
      slow_senders(closed(metrics, "slow_sender")),
      bytes_in(metrics.counter("millrace_kafka_received_bytes_total", "Bytes received")),
      bytes_out(metrics.counter("millrace_kafka_sent_bytes_total", "Bytes sent")) {
  for (const auto& api : apis.all()) {
    by_api_.push_back({metrics.counter("millrace_kafka_requests_total", "Requests begun, by API",
                                       label_of(api.info->name)),
                       metrics.histogram("millrace_kafka_request_seconds",
                                         "Time from a request to its answer, by API; a fetch may "
                                         "wait for records, a produce for replicas",
                                         label_of(api.info->name))});
  }
}

const ApiMetrics& TransportMetrics::of(const Api& api) const noexcept {
  return by_api_[static_cast<std::size_t>(&api - apis_.all().data())];
}

void TransportMetrics::count_error(kafka::ApiKey api, ErrorCode error) {
  auto labels = label_of(kafka::info_of(api).name);
  labels.push_back({"error", std::string(name_of(error))});
  metrics_
      .counter("millrace_kafka_errors_total", "Error codes in answers, by API and error",
               std::move(labels))
      .add();
}

}  // namespace millrace::kafka_transport
