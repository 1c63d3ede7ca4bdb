// What the system counts for the process, under the names that Prometheus' own libraries give it:
// process_resident_memory_bytes, process_cpu_seconds_total, …
#pragma once

#include <vector>

#include <millrace/environment.h>
#include <millrace/observe.h>

namespace millrace::http_transport {

/// Of /proc, through the environment's files; what cannot be read is left out.  [a worker]
std::vector<MetricFamily> process_metrics(FileSystem& files);

}  // namespace millrace::http_transport
