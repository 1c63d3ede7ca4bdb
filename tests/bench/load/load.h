// One load on one broker, whichever it is: what a peer is measured with is what Millrace is
// measured with.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/cli/histogram.h"

namespace millrace::bench {

using Clock = std::chrono::steady_clock;
using kernel::cli::Histogram;

/// What ends a measurement: the broker refused, or went away.
class LoadFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Of this process, in its own code and in the system's.
double cpu_seconds();

struct Load {
  std::string address;
  std::string topic;
  int partitions = 1;
  std::int64_t messages = 0;
  std::size_t message_bytes = 100;
  std::string acks = "all";
  std::string compression = "none";
  int linger_ms = 5;
  bool scatter = false;  ///< each message to a random partition, not a batch to one
  int connections = 1;
  int depth = 1;               ///< requests in flight on a connection
  int passes = 1;              ///< over what is fetched
  double seconds = 5;          ///< of the loads that are paced or timed
  double per_second = 1000;    ///< of the paced load
  double warm_up_seconds = 2;  ///< of the paced load, which are not counted
  std::string file;            ///< of the plain server: what it sends, or appends to
};

struct Figures {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  double seconds = 0;
  Histogram latency;              ///< empty where the load has none
  double server_cpu_seconds = 0;  ///< of the plain server
};

/// librdkafka, from the first send to the last acknowledgement; latency is that of a delivery.
Figures produce(const Load& load);
/// librdkafka by explicit assignment from the start, from the first message to the last.
Figures consume(const Load& load);
/// librdkafka, a producer at a steady rate and a consumer. A latency counts from when its message
/// should have been sent, so that a stall is seen by all that it delayed.
Figures end_to_end(const Load& load);
/// librdkafka, a producer at a steady rate; a latency counts from when its message should have been
/// sent to its acknowledgement.
Figures produce_paced(const Load& load);
/// One record a request over raw sockets, `depth` requests in flight on each connection, for
/// `seconds`.
Figures small_requests(const Load& load);
/// Whole partitions read over raw sockets, 1 MiB at a time, `passes` times; the records are thrown
/// away.
Figures raw_fetch(const Load& load);

/// Requests of `message_bytes` for one log after another of `partitions`, `depth` in flight on each
/// connection, to a server of our own that receives them, takes a crc, appends and answers:
/// `messages` of them, or for `seconds` where that is 0.
Figures plain_append(const Load& load);
/// Such requests at a steady rate, and a reader who is sent what is new by sendfile.
Figures plain_end_to_end(const Load& load);
/// `file` over each of `connections` from a server of our own, 1 MiB at a time by sendfile,
/// `passes` times.
Figures plain_fetch(const Load& load);

/// `messages` members in groups of ten over `connections` sockets, each of which says every three
/// seconds that it lives, for `seconds`. Prints "ready" once all groups have settled.
Figures classic_heartbeats(const Load& load);
/// The same by the protocol of KIP-848; the members subscribe to `topic`.
Figures consumer_heartbeats(const Load& load);

/// Text with numbers in it that compresses about as log lines do; no two stretches of it are the
/// same.
std::string make_text(std::size_t bytes);

}  // namespace millrace::bench
