#include "replayer.h"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include <millrace/bytes.h>
#include <millrace/error_code.h>
#include <millrace/kafka/api_key.h>
#include <millrace/kafka/message_info.h>

#include "compare_answers.h"
#include "rewrite.h"

namespace millrace::wire {

namespace {

namespace json = boost::json;
using kafka::ApiKey;

constexpr auto close_wait_max = std::chrono::seconds(10);

bool contains_error(const json::value& value, ErrorCode code) {
  if (value.is_array()) {
    return std::ranges::any_of(value.as_array(),
                               [&](const auto& element) { return contains_error(element, code); });
  }
  if (!value.is_object()) return false;
  return std::ranges::any_of(value.as_object(), [&](const auto& field) {
    return field.key() == "errorCode" ? field.value() == json::value(static_cast<int>(code))
                                      : contains_error(field.value(), code);
  });
}

class Replay {
 public:
  Replay(const Session& session, const Address& broker, const ServedApis& served, Bindings bindings)
      : session_(session), broker_(broker), served_(served), bindings_(std::move(bindings)) {}

  Outcome run() {
    for (std::size_t at = 0; at < session_.events.size(); ++at) step(at);
    return std::move(outcome_);
  }

 private:
  struct Connection {
    std::unique_ptr<Link> link;       // none: could not be made, or has ended
    std::deque<std::size_t> awaited;  // requests sent, not answered yet
    bool client_closed = false;
    bool skipped = false;  // something was not sent, so what followed from it cannot be expected
  };

  void step(std::size_t at) {
    const auto& event = session_.events[at];
    auto& connection = connections_[event.connection];
    switch (event.kind) {
      case Event::Kind::open: return open(event, connection);
      case Event::Kind::request: return send(at, connection);
      case Event::Kind::answer: return await_answer(event, connection);
      case Event::Kind::client_closed: return close(event, connection);
      case Event::Kind::server_closed: return await_close(event, connection);
    }
  }

  void open(const Event& event, Connection& connection) {
    auto link = Link::connect(broker_);
    if (link) {
      connection.link = *std::move(link);
    } else {
      differs(event, "connection", "opened", link.error().detail);
    }
  }

  void send(std::size_t at, Connection& connection) {
    const auto& event = session_.events[at];
    if (auto reason = why_skipped(event); !reason.empty()) {
      connection.skipped = true;
      outcome_.skipped.push_back(event.label() + ": " + reason);
      skipped_.insert(at);
      return;
    }
    if (!connection.link) return differs(event, "request", "sent", "the connection has ended");
    const auto frame = rewrite_request(event, bindings_, too_new(event));
    MutableBuffer sized(sizeof(std::int32_t) + frame.size());
    store_be(sized.space().data(), static_cast<std::int32_t>(frame.size()));
    sized.filled(sizeof(std::int32_t));
    sized.append(frame);
    if (const auto sent = connection.link->send(sized.bytes()); !sent) {
      connection.link.reset();
      return differs(event, "request", "sent", sent.error().detail);
    }
    connection.awaited.push_back(at);
  }

  /// "" for a request that is to be sent.
  std::string why_skipped(const Event& request) const {
    if (request.raw) return offered(ApiKey::sasl_handshake, 0) ? "" : "no SASL yet";
    if (wants_missing_coordinator(request)) return "nobody coordinates this yet";
    if (offered(static_cast<ApiKey>(request.key), request.version)) {
      if (request.partner || request.readable) return "";
      // Kafka refused it: for its version, which is no test of ours where we know it, or for bytes
      // that make no sense in any version.
      return request.body() ? "only the recorded broker refuses this version" : "";
    }
    if (!request.partner && !request.readable) return "";
    if (request.key == static_cast<std::int16_t>(ApiKey::api_versions)) return "";
    return "the API, or this version of it, is not served";
  }

  /// Of transactions or of share groups, whose own APIs are not served.
  bool wants_missing_coordinator(const Event& request) const {
    if (request.key != static_cast<std::int16_t>(ApiKey::find_coordinator)) return false;
    const auto body = request.body();
    const auto* type = body ? body->if_contains("keyType") : nullptr;
    if (!type) return false;
    return (*type == json::value(1) &&
            !served_.contains(static_cast<std::int16_t>(ApiKey::end_txn))) ||
           (*type == json::value(2) &&
            !served_.contains(static_cast<std::int16_t>(ApiKey::share_group_heartbeat)));
  }

  bool offered(ApiKey key, std::int16_t version) const {
    const auto found = served_.find(static_cast<std::int16_t>(key));
    return found != served_.end() && found->second.contains(version);
  }

  bool too_new(const Event& request) const {
    if (request.key != static_cast<std::int16_t>(ApiKey::produce) || !request.partner) return false;
    const auto answer = session_.events[*request.partner].body();
    return answer && contains_error(*answer, ErrorCode::invalid_timestamp);
  }

  void await_answer(const Event& event, Connection& connection) {
    if (!event.partner || skipped_.contains(*event.partner) || !connection.link) return;
    const auto& request = session_.events[*event.partner];
    while (true) {
      const auto frame = connection.link->receive();
      if (!frame) {
        connection.link.reset();
        return differs(request, "answer", "an answer", frame.error().detail);
      }
      const auto answered =
          connection.awaited.empty() ? *event.partner : connection.awaited.front();
      if (!connection.awaited.empty()) connection.awaited.pop_front();
      if (answered == *event.partner) return compare(event, request, *frame);
      // The recording has no answer to this one; ours may be quicker than a client that hangs up.
      check_unrecorded(session_.events[answered], *frame);
    }
  }

  void compare(const Event& recorded, const Event& request, const Buffer& frame) {
    const auto expected = recorded.body();
    if (!expected) {
      return differs(request, "recording", "an answer in our words", expected.error().detail);
    }
    if (frame.size() < 4 || load_be<std::int32_t>(frame.data()) != request.correlation_id) {
      return differs(request, "correlation id", std::to_string(request.correlation_id), "another");
    }
    const auto found = answer_body(frame, request.key, request.version);
    if (!found) return differs(request, "answer", "an answer in our words", found.error().detail);
    const auto differences = compare_answers(request, *expected, *found, bindings_);
    for (const auto& one : differences) differs(request, one.path, one.expected, one.found);
    if (differences.empty()) ++outcome_.equal;
  }

  void check_unrecorded(const Event& request, const Buffer& frame) {
    const auto body = request.body();
    const auto* acks = body ? body->if_contains("acks") : nullptr;
    if (!acks || *acks != json::value(0)) return;
    differs(request, "answer", "none, for acks is 0", std::to_string(frame.size()) + " bytes");
  }

  void close(const Event& event, Connection& connection) {
    connection.client_closed = true;
    if (!connection.link) return;
    connection.link->finish_sending();
    while (true) {
      const auto frame = connection.link->receive(close_wait_max);
      if (!frame) {
        connection.link.reset();
        if (frame.error().code == Errc::closed) return;
        return differs(event, "connection", "closed after the client did", frame.error().detail);
      }
      if (connection.awaited.empty()) {
        differs(event, "answer", "none", std::to_string(frame->size()) + " bytes unasked");
        continue;
      }
      check_unrecorded(session_.events[connection.awaited.front()], *frame);
      connection.awaited.pop_front();
    }
  }

  void await_close(const Event& event, Connection& connection) {
    if (connection.client_closed || !connection.link) return;
    if (connection.skipped) return connection.link.reset();
    const auto frame = connection.link->receive(close_wait_max);
    connection.link.reset();
    if (!frame && frame.error().code == Errc::closed) {
      ++outcome_.equal;
      return;
    }
    const auto& request =
        connection.awaited.empty() ? event : session_.events[connection.awaited.front()];
    differs(
        request, "connection", "closed by the broker",
        frame ? "an answer of " + std::to_string(frame->size()) + " bytes" : frame.error().detail);
  }

  void differs(const Event& event, const std::string& path, const std::string& expected,
               const std::string& found) {
    outcome_.differences.push_back(event.label() +
                                   (event.client.empty() ? "" : " (" + event.client + ")") + ": " +
                                   path + ": expected " + expected + ", found " + found);
  }

  const Session& session_;
  const Address& broker_;
  const ServedApis& served_;
  std::map<int, Connection> connections_;
  std::set<std::size_t> skipped_;
  Bindings bindings_;
  Outcome outcome_;
};

}  // namespace

Outcome replay(const Session& session, const Address& broker, const ServedApis& served,
               Bindings bindings) {
  return Replay(session, broker, served, std::move(bindings)).run();
}

}  // namespace millrace::wire
