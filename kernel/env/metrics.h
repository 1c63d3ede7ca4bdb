// What an environment counts of the work of its loops and sockets.
#pragma once

#include <millrace/observe.h>

namespace millrace::kernel {

/// [any thread]
struct EnvironmentMetrics {
  explicit EnvironmentMetrics(Metrics& metrics)
      : received_bytes(metrics.counter("millrace_network_received_bytes_total",
                                       "Bytes received: each enters the process once")),
        sent_from_memory_bytes(sent(metrics, "memory")),
        sent_from_files_bytes(sent(metrics, "file")),
        tasks_failed(metrics.counter("millrace_tasks_failed_total",
                                     "Background tasks that ended with an error")) {}

  Counter& received_bytes;
  Counter& sent_from_memory_bytes;
  Counter& sent_from_files_bytes;  ///< by sendfile: they never enter the process
  Counter& tasks_failed;

 private:
  static Counter& sent(Metrics& metrics, const char* from) {
    return metrics.counter("millrace_network_sent_bytes_total",
                           "Bytes sent, from memory or straight from a file", {{"from", from}});
  }
};

}  // namespace millrace::kernel
