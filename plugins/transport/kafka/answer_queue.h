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

  struct Ready {
    Payload answers;
    std::uint64_t memory_bytes = 0;
  };
  /// Answers that are ready at the front, as one payload, in order; their places are freed. One at
  /// least, and no more once they hold `memory_bytes_max`: what a slow reader has taken is let go
  /// of before the rest is.
  Ready take_ready(std::uint64_t memory_bytes_max);

  /// Requests that were begun and whose answers were not taken yet.
  std::size_t size() const noexcept { return slots_.size(); }
  bool empty() const noexcept { return slots_.empty(); }
  bool front_is_ready() const noexcept { return !slots_.empty() && slots_.front().has_value(); }
  /// What the answers that are ready and wait hold in memory; ranges of files cost nothing.
  std::uint64_t memory_bytes() const noexcept { return memory_bytes_; }

 private:
  struct Answer {
    Payload payload;
    std::uint64_t memory_bytes = 0;
  };

  std::deque<std::optional<Answer>> slots_;
  Ticket first_ = 0;  // of slots_.front()
  std::uint64_t memory_bytes_ = 0;
};

}  // namespace millrace::kafka_transport
