// What was sent, acknowledged and shown of one partition, and what of it no cluster may do: as
// tests/cluster/parts/history.py, for simulated brokers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace millrace::testing {

struct SimRecord {
  std::int64_t offset = -1;
  std::string value;
  friend bool operator==(const SimRecord&, const SimRecord&) = default;
};

/// Of one idempotent producer that waits for all replicas, and of one reader.
struct SimHistory {
  std::vector<std::string> sent;
  std::map<std::string, std::int64_t> acknowledged;  ///< at which offset
  std::vector<SimRecord> shown;                      ///< while faults happened, in order
  std::vector<SimRecord> log;                        ///< at the end
  std::vector<std::string> errors;                   ///< that no client may be told
};

/// A sentence for each thing that must not be; none: all is well.
std::vector<std::string> violations(const SimHistory& history);

}  // namespace millrace::testing
