#include "connection.h"

#include <chrono>
#include <utility>

#include "access.h"
#include "json.h"
#include "routes.h"

namespace millrace::http_transport {
namespace {

constexpr Duration drain_max = std::chrono::seconds(1);

// A service may be there before it serves, and when it does no more.
HttpResponse not_serving(const Operations* operations) {
  if (operations != nullptr && operations->state() == Operations::State::starting) {
    return error_response(503, "starting", "the broker is starting; ask again");
  }
  return error_response(503, "stopping", "the broker is stopping");
}

}  // namespace

TransportMetrics::TransportMetrics(Metrics& metrics)
    : connections(metrics.gauge("millrace_http_connections", "Open HTTP connections")),
      connections_displaced(
          metrics.counter("millrace_http_connections_displaced_total",
                          "Connections that waited for their peers and gave way to others")),
      connections_refused(metrics.counter("millrace_http_connections_refused_total",
                                          "Connections closed because of max.connections")),
      requests(metrics.counter("millrace_http_requests_total", "HTTP requests answered")),
      bad_requests(metrics.counter("millrace_http_bad_requests_total",
                                   "Connections closed because of what was received")) {}

Connection::Connection(const Services& services, TransportMetrics& metrics,
                       std::unique_ptr<Stream> stream)
    : services_(services),
      metrics_(metrics),
      stream_(std::move(stream)),
      client_{.client_id = "http", .peer = stream_->peer()},
      session_(services.broker.open_session(client_)),
      reader_(services.settings.body_bytes_max) {}

Task<> Connection::run() {
  auto serving = serve().within(scope_);
  const auto served = co_await std::move(serving);
  if (!served) {
    services_.log.debug("connection ends",
                        {{"peer", to_string(client_.peer)}, {"reason", served.error().detail}});
  }
  stream_->close();
  co_return {};
}

void Connection::stop() noexcept {
  ending_ = true;
  if (waiting_) abort();
}

void Connection::abort() noexcept {
  ending_ = true;
  scope_.cancel();
  stream_->close();
}

Task<> Connection::serve() {
  while (!ending_) {
    waits_since_ = services_.environment.clock().now();
    MR_CO_CHECK(co_await await_request());
    MR_CO_TRY(auto read, co_await read_request_in_time());
    waits_since_.reset();
    if (auto* refusal = std::get_if<Refusal>(&read)) {
      auto refusing = refuse(std::move(*refusal));
      co_return co_await std::move(refusing);
    }
    auto& request = std::get<HttpRequest>(read);
    const bool head = request.method == "HEAD";
    bool keep_alive = request.keep_alive;
    auto answering = answer(std::move(request));
    MR_CO_TRY(const auto response, co_await std::move(answering));
    metrics_.requests.add();
    keep_alive = keep_alive && !ending_;
    auto payload = to_payload(response, services_.environment.clock().wall(), keep_alive, head);
    auto sending = send(std::move(payload));
    MR_CO_CHECK(co_await std::move(sending));
    if (!keep_alive) break;
  }
  co_return co_await drain();
}

Task<> Connection::receive() {
  auto receiving = stream_->receive(reader_.space());
  MR_CO_TRY(const auto bytes, co_await std::move(receiving));
  if (bytes == 0) co_return Error{Errc::closed, "peer closed the connection"};
  reader_.filled(bytes);
  co_return {};
}

Task<> Connection::await_request() {
  if (reader_.begun()) co_return {};
  waiting_ = true;
  auto waiting = with_deadline(receive(), services_.settings.idle_max);
  auto received = co_await std::move(waiting);
  waiting_ = false;
  co_return received;
}

Task<std::variant<HttpRequest, Refusal>> Connection::read_request() {
  while (true) {
    auto next = reader_.next();
    if (!next) co_return std::move(next).error();
    if (*next) co_return **std::move(next);
    if (reader_.take_wish_to_continue()) {
      auto sending = send(continue_payload());
      MR_CO_CHECK(co_await std::move(sending));
    }
    MR_CO_CHECK(co_await receive());
  }
}

// The whole request, not each of its bytes: a peer that sends them one by one is not waited for.
Task<std::variant<HttpRequest, Refusal>> Connection::read_request_in_time() {
  auto reading = with_deadline(read_request(), services_.settings.request_max);
  auto read = co_await std::move(reading);
  if (read || read.error().code != Errc::timed_out) co_return std::move(read);
  co_return Refusal{408, "a request that did not arrive within request.timeout.ms"};
}

Task<HttpResponse> Connection::answer(HttpRequest request) {
  if (request.path.starts_with("/admin")) {
    if (auto refused = refuse_access(request, services_.settings)) co_return *std::move(refused);
  }
  auto found = find_route(all_routes(), request);
  if (auto* response = std::get_if<HttpResponse>(&found)) co_return std::move(*response);
  auto& route = std::get<Found>(found);
  Exchange exchange{services_, *session_, std::move(request), std::move(route.arguments)};
  auto handling = route.handler(exchange);
  auto response = co_await std::move(handling);
  if (response || response.error().code == Errc::cancelled) co_return std::move(response);
  if (response.error().code == Errc::closed) co_return not_serving(services_.operations);
  services_.log.error("a request failed here", {{"peer", to_string(client_.peer)},
                                                {"path", exchange.request.path},
                                                {"reason", to_string(response.error())}});
  co_return error_response(500, "internal", to_string(response.error()));
}

Task<> Connection::send(Payload payload) {
  waits_since_ = services_.environment.clock().now();
  auto sending = with_deadline(stream_->send(std::move(payload)), services_.settings.request_max);
  co_return co_await std::move(sending);
}

Task<> Connection::refuse(Refusal refusal) {
  metrics_.bad_requests.add();
  services_.log.warning("closing a connection that sent a bad request",
                        {{"peer", to_string(client_.peer)}, {"reason", refusal.reason}});
  if (refusal.status == 0) co_return {};
  const auto response = error_response(refusal.status, "bad_request", refusal.reason);
  auto payload = to_payload(response, services_.environment.clock().wall(), false, false);
  auto sending = send(std::move(payload));
  MR_CO_CHECK(co_await std::move(sending));
  co_return co_await drain();
}

Task<> Connection::drain() {
  auto read_all = [](Connection* self) -> Task<> {
    while (true) {
      auto receiving = self->stream_->receive(self->reader_.space());
      MR_CO_TRY(const auto bytes, co_await std::move(receiving));
      if (bytes == 0) co_return {};
    }
  };
  auto draining = with_deadline(read_all(this), drain_max);
  const auto drained = co_await std::move(draining);
  co_return {};
}

}  // namespace millrace::http_transport
