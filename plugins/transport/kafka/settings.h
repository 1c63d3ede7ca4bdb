// What can be set in `[transport.NAME]`, by Kafka's own name where Kafka has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <millrace/environment.h>
#include <millrace/options.h>

namespace millrace::kafka_transport {

inline constexpr MillraceOption declared_options[] = {
    {"listen", MILLRACE_OPTION_TEXT, nullptr, "127.0.0.1:9092", unbounded_min, unbounded_max,
     nullptr, "Address to accept connections on, HOST:PORT; port 0 takes a free one.", 0},
    {"advertise", MILLRACE_OPTION_TEXT, nullptr, "", unbounded_min, unbounded_max, nullptr,
     "Address that clients are told to connect to, HOST:PORT; empty for the one listened on, port "
     "0 "
     "for the bound one. Needed when listening on all interfaces.",
     0},
    {"connections.max.idle.ms", MILLRACE_OPTION_INTEGER, "ms", "600000", -1, 315'360'000'000,
     nullptr, "A connection without traffic for this long is closed; -1 keeps it.", 0},
    {"socket.request.max.bytes", MILLRACE_OPTION_INTEGER, "bytes", "104857600", 1024, 0x7fffffff,
     nullptr, "The largest request that is accepted.", 0},
    {"max.connections", MILLRACE_OPTION_INTEGER, nullptr, "10000", 1, 0x7fffffff, nullptr,
     "Connections beyond this many are closed at once.", 0},
    {"requests.in.flight.max", MILLRACE_OPTION_INTEGER, nullptr, "64", 1, 65536, nullptr,
     "Requests of one connection that may be unanswered before it is no longer read from.", 0},
    {"answers.pending.max.bytes", MILLRACE_OPTION_INTEGER, "bytes", "67108864", 1, 0x7fffffffffff,
     nullptr,
     "Answers that may wait in memory for peers that do not read, in sum. Beyond it their "
     "connections are not read from, and those that stay so are closed.",
     0},
    {nullptr, 0, nullptr, nullptr, 0, 0, nullptr, nullptr, 0},
};

struct Settings {
  Address listen;
  Address advertise;    ///< port 0: the bound one
  Duration idle_max{};  ///< zero: no limit
  std::int32_t frame_bytes_max = 0;
  std::size_t connections_max = 0;
  std::size_t requests_in_flight_max = 0;
  std::size_t answer_bytes_pending_max = 0;  ///< of all connections together
};

/// Errc::invalid_argument says which option and what it should be.
Result<Settings> read_settings(const Options& options);

}  // namespace millrace::kafka_transport
