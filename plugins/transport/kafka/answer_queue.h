// Answers of one connection, sent in the order of their requests whenever they become ready.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include <millrace/payload.h>

namespace millrace::kafka_transport {

/// [its connection's shard]
class AnswerQueue {
 public:
  /// The place of one request's answer.
  using Ticket = std::uint64_t;

  Ticket reserve() {
    slots_.emplace_back();
    return first_ + slots_.size() - 1;
  }
  /// An empty answer sends nothing, as for acks=0. At most once per ticket.
  void put(Ticket ticket, Payload answer);
  /// This request and those after it will not be answered; what is put for them is dropped.
  void cut(Ticket ticket) noexcept;

  /// All answers that are ready at the front, as one payload, in order; their places are freed.
  Payload take_ready();

  /// Requests that were begun and whose answers were not taken yet.
  std::size_t size() const noexcept { return slots_.size(); }
  bool empty() const noexcept { return slots_.empty(); }
  bool front_is_ready() const noexcept { return !slots_.empty() && slots_.front().has_value(); }
  /// The sizes of answers that are ready and wait.
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::deque<std::optional<Payload>> slots_;
  Ticket first_ = 0;  // of slots_.front()
  std::uint64_t bytes_ = 0;
};

}  // namespace millrace::kafka_transport
