// A recorded session: what a real client and a real broker said to each other
// (tests/golden/README.md, sessions/).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include <millrace/buffer.h>

namespace millrace::wire {

struct Event {
  enum class Kind { open, request, answer, client_closed, server_closed };

  Kind kind = Kind::open;
  int number = 0;
  int connection = 0;
  std::int16_t key = -1;
  std::int16_t version = -1;
  std::int32_t correlation_id = 0;
  std::string client;
  Buffer frame;           ///< header and body
  bool raw = false;       ///< a SASL token, without a Kafka header
  bool readable = false;  ///< the recorded broker's own classes could parse it

  /// Of a request: its answer; of an answer: its request. Where they stand in Session::events.
  std::optional<std::size_t> partner;

  /// "12 Fetch v11 (raw:fetch-0)"
  std::string label() const;
  /// The body in Kafka's JSON form, records in base64.
  Result<boost::json::object> body() const;
};

struct Session {
  std::string path;
  std::vector<Event> events;
};

Result<Session> read_session(const std::string& path);

/// The body of an answer, also a live one, to a request of `key` and `version`.
Result<boost::json::object> answer_body(const Buffer& frame, std::int16_t key,
                                        std::int16_t version);

}  // namespace millrace::wire
