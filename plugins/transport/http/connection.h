// One client connection: reads a request, answers it, reads the next.
#pragma once

#include <memory>
#include <optional>
#include <variant>

#include <millrace/broker.h>
#include <millrace/environment.h>

#include "exchange.h"
#include "request_reader.h"

namespace millrace::http_transport {

/// [any thread]
struct TransportMetrics {
  explicit TransportMetrics(Metrics& metrics);
  Gauge& connections;
  Counter& connections_displaced;
  Counter& connections_refused;
  Counter& requests;
  Counter& bad_requests;
};

/// [its shard]
class Connection {
 public:
  Connection(const Services& services, TransportMetrics& metrics, std::unique_ptr<Stream> stream);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Serves until either side ends it; always completes without error. Only afterwards may this be
  /// destroyed.
  Task<> run();
  /// Ends once the request that is being answered, if there is one, is answered.
  void stop() noexcept;
  /// Closes at once.
  void abort() noexcept;
  /// Since when it waits for its peer: to ask, to ask to the end, to take the answer; none while
  /// the answer is made.
  std::optional<MonoTime> waits_since() const noexcept { return waits_since_; }

 private:
  Task<> serve();
  Task<> receive();
  /// Waits for the first byte of a request.
  Task<> await_request();
  Task<std::variant<HttpRequest, Refusal>> read_request();
  Task<std::variant<HttpRequest, Refusal>> read_request_in_time();
  Task<HttpResponse> answer(HttpRequest request);
  Task<> send(Payload payload);
  Task<> refuse(Refusal refusal);
  /// Reads what still comes, so that the system does not take back an answer that was not read.
  Task<> drain();

  const Services& services_;
  TransportMetrics& metrics_;
  const std::unique_ptr<Stream> stream_;
  const ClientInfo client_;
  const std::unique_ptr<Session> session_;
  RequestReader reader_;
  CancelScope scope_;
  bool waiting_ = false;  // for a request
  std::optional<MonoTime> waits_since_;
  bool ending_ = false;
};

}  // namespace millrace::http_transport
