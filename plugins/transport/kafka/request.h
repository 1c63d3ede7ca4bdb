// One request on its way from frame to answer, as the handlers see it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <millrace/broker.h>
#include <millrace/kafka/codec.h>

#include "error_codes.h"
#include "listener_context.h"
#include "signal.h"

namespace millrace::kafka_transport {

/// Only one request of a connection at a time has no fixed place yet: the next begins after it.
/// [its connection's shard]
class Turn {
 public:
  bool taken() const noexcept { return taken_; }
  void take() noexcept {
    taken_ = true;
    if (auto* waits = std::exchange(gives_way_, nullptr)) waits->cancel();
  }
  /// Ends `scope` when the next request begins, until stop_giving_way().
  void give_way(CancelScope* scope) noexcept { gives_way_ = scope; }
  void stop_giving_way(const CancelScope* scope) noexcept {
    if (gives_way_ == scope) gives_way_ = nullptr;
  }
  void pass() {
    taken_ = false;
    passed_.notify();
  }
  /// Woken when the turn is passed and by whatever else lets a connection go on.
  Signal& passed() noexcept { return passed_; }

 private:
  bool taken_ = false;
  CancelScope* gives_way_ = nullptr;
  Signal passed_;
};

/// Lives from the request's first byte until its answer is in the queue.  [its connection's shard]
class Request {
 public:
  /// What a parked request counts for: its mapped form, without the frame.
  static constexpr std::size_t parked_bytes = 1024;

  Request(const ListenerContext& context, Session& of, ClientInfo& who, kafka::RequestHead decoded,
          MemoryBudget::Lease lease, Turn& turn)
      : listener(context),
        broker(context.broker),
        session(of),
        client(who),
        head(std::move(decoded)),
        memory(std::move(lease)),
        turn_(turn) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() { dispatched(); }

  /// The place of this request in every partition is fixed: the connection begins its next one.
  void dispatched() {
    if (!std::exchange(dispatched_, true)) turn_.pass();
  }
  /// Lets go of the frame, and of its share of memory but for what a parked request keeps. No view
  /// of the request may be used afterwards.
  void park() {
    head.body = {};
    head.client_id.reset();
    memory.shrink_to(parked_bytes);
  }

  /// The next request of the connection ends `scope`, until stop_giving_way().
  void give_way(CancelScope* scope) noexcept { turn_.give_way(scope); }
  void stop_giving_way(const CancelScope* scope) noexcept { turn_.stop_giving_way(scope); }

  /// Ends the connection once this request is answered: it sent a decompression bomb.
  void end_for_bomb(std::string what) { bomb_ = std::move(what); }
  const std::optional<std::string>& bomb() const noexcept { return bomb_; }

  /// Reads the body. Errc::corrupt names the field that is malformed.
  template <class Message>
  Result<Message> decode() const {
    return head.decode<Message>();
  }
  /// An answer that cannot be written is our own mistake.
  template <class Response>
  Result<Payload> encode(const Response& response) const {
    auto count = [this](ErrorCode error) {
      listener.metrics.count_error(Response::api_key, error);
    };
    for_each_error(response, count);
    auto answer = kafka::encode_response(head, response);
    if (answer) return answer;
    return Error{Errc::internal, "answer: " + to_string(answer.error())};
  }

  const ListenerContext& listener;
  Broker& broker;
  Session& session;
  ClientInfo& client;
  kafka::RequestHead head;
  MemoryBudget::Lease memory;

 private:
  Turn& turn_;
  bool dispatched_ = false;
  std::optional<std::string> bomb_;
};

}  // namespace millrace::kafka_transport
