// What operates the aggregates of a broker (<millrace/aggregate.h>): which run, from which file,
// and another version in the place of one that runs. For transports that people and their tools
// look through.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/task.h>

namespace millrace {

/// An aggregate that this broker runs.
struct AggregateFact {
  std::string name;
  std::string topic;    ///< of its events; beside partitions of users: what its names begin with
  std::string plugin;   ///< id
  std::string version;  ///< of the plugin whose objects run now
  std::string path;     ///< of the file that this is from
  std::string starts_from;      ///< of the file that it runs from after a restart
  std::int32_t partitions = 0;  ///< that are led here
  std::int32_t serving = 0;     ///< those of them that are loaded
};

/// Broker::service<AggregateAdmin>(). Implemented by the kernel. Errc::closed: the broker is
/// stopping.  [the caller's shard]
class AggregateAdmin {
 public:
  static constexpr std::string_view service_id = "millrace.aggregate_admin/1";

  virtual ~AggregateAdmin() = default;
  /// Sorted by name.
  virtual Task<std::vector<AggregateFact>> list() = 0;
  /// Until this broker restarts, the aggregate goes on as what the plugin in `file` (one of the
  /// broker's machine) makes of its snapshots and its log. Loaded beside the one that runs: what
  /// does not fit, or cannot read them, is refused (Errc::invalid_argument, and why), and that one
  /// goes on. Whose answer is on its way gets it; who waits for a later one is told to ask again
  /// (COORDINATOR_LOAD_IN_PROGRESS); who asks meanwhile waits. At this broker alone: see
  /// <millrace/replacements.h>. Errc::not_found: there is no such aggregate. Errc::conflict: not
  /// now.
  virtual Task<> replace(std::string aggregate, std::string file) = 0;
};

}  // namespace millrace
