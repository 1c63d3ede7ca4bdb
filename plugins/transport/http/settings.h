// What can be set in `[transport.http]`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <millrace/environment.h>
#include <millrace/options.h>

namespace millrace::http_transport {

inline constexpr MillraceOption declared_options[] = {
    {"listen", MILLRACE_OPTION_TEXT, nullptr, "127.0.0.1:9644", unbounded_min, unbounded_max,
     nullptr,
     "Address to accept connections on, HOST:PORT; port 0 takes a free one. Nobody is asked who he "
     "is: whoever reaches it administers the broker.",
     0},
    {"hosts", MILLRACE_OPTION_TEXTS, nullptr, "", unbounded_min, unbounded_max, nullptr,
     "Names, beside localhost and addresses, by which /admin may be called: a name that leads here "
     "may be a trap for a browser.",
     0},
    {"max.connections", MILLRACE_OPTION_INTEGER, nullptr, "64", 1, 65536, nullptr,
     "Connections that may be open. Beyond, the one that has waited for its peer for the longest "
     "gives way, and where all answers are being made the new one is closed.",
     0},
    {"connections.max.idle.ms", MILLRACE_OPTION_INTEGER, "ms", "60000", 1, 315'360'000'000, nullptr,
     "A connection without a request for this long is closed.", 0},
    {"request.timeout.ms", MILLRACE_OPTION_INTEGER, "ms", "10000", 1, 3'600'000, nullptr,
     "A request must have arrived this long after its first byte, and its answer be taken this "
     "long "
     "after it is ready.",
     0},
    {"request.max.bytes", MILLRACE_OPTION_INTEGER, "bytes", "1048576", 1, 0x7fffffff, nullptr,
     "The largest body of a request that is accepted.", 0},
    {"metrics.partition.series.max", MILLRACE_OPTION_INTEGER, nullptr, "10000", 0, 0x7fffffff,
     nullptr, "Series of partitions beyond this many are summed up by topic.", 0},
    {nullptr, 0, nullptr, nullptr, 0, 0, nullptr, nullptr, 0},
};

struct Settings {
  Address listen;
  std::vector<std::string> hosts;
  std::size_t connections_max = 0;
  Duration idle_max{};
  Duration request_max{};
  std::size_t body_bytes_max = 0;
  std::size_t partition_series_max = 0;
};

/// Errc::invalid_argument says which option and what it should be.
Result<Settings> read_settings(const Options& options);

}  // namespace millrace::http_transport
