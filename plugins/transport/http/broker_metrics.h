// What the broker knows and does not count: looked at when it is asked for.
#pragma once

#include <vector>

#include <millrace/observe.h>

#include "exchange.h"

namespace millrace::http_transport {

/// Memory for requests in flight, shard by shard.  [connection's shard]
Task<std::vector<MetricFamily>> memory_metrics(const Services& services);

}  // namespace millrace::http_transport
