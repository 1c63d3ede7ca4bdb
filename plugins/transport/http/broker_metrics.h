// What the broker knows and does not count: looked at when it is asked for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <millrace/admin.h>
#include <millrace/observe.h>

#include "exchange.h"

namespace millrace::http_transport {

/// Memory for requests in flight, shard by shard.  [connection's shard]
Task<std::vector<MetricFamily>> memory_metrics(const Services& services);

/// Partitions and the folders that hold them: sizes and offsets.  [connection's shard]
Task<std::vector<MetricFamily>> log_metrics(Exchange& exchange);

/// The same of what is known. When that is more than `series_max` series, those of a topic are
/// summed up, then all of them.
std::vector<MetricFamily> log_metrics(const std::vector<LogFolder>& folders,
                                      std::size_t series_max);

/// What does not work. Partitions are named "topic-3".
struct Trouble {
  std::vector<std::string> offline;  ///< partitions whose log could not be opened
  std::vector<std::string> failing;  ///< partitions that take no records
  bool none() const noexcept { return offline.empty() && failing.empty(); }
};
Task<Trouble> find_trouble(Exchange& exchange);

}  // namespace millrace::http_transport
