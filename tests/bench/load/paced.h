// Messages that are sent when they are due, however long those before them take.
#pragma once

#include <chrono>
#include <cstdint>

#include "rdkafka.h"

namespace millrace::bench {

struct Pace {
  explicit Pace(const Load& load);

  Clock::time_point due(std::int64_t message) const { return start + message * step; }

  Clock::time_point start;
  Clock::time_point counted_from;  ///< what is due before only warms up
  std::chrono::nanoseconds step;
  std::int64_t messages;
};

/// Returns when it is.
void wait_until(Clock::time_point due);

/// Sends message `n` when it is due; what is sent carries the time that it was due at.
void send_paced(rd_kafka_t* client, rd_kafka_topic_t* topic, const Pace& pace, std::string value);

/// When a message that `send_paced` sent was due.
Clock::time_point due_of(const rd_kafka_message_t& message);

/// How long that was ago.
std::int64_t microseconds_since(Clock::time_point due);

}  // namespace millrace::bench
