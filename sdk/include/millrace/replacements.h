// Other code for what runs, at every broker of the cluster: the operator of a stream's step, a
// running aggregate. What Streams::replace and AggregateAdmin::replace do at one broker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/task.h>

namespace millrace {

/// What became of it at a broker.
struct ReplacedAt {
  std::int32_t broker = -1;
  std::string refused;  ///< why it was not replaced there, as far as is known; empty: it was
};

/// Broker::service<Replacements>(). Implemented by the kernel. First at this broker: what fails
/// here is an error, and nobody else is asked. Then at the others that live, each by itself; one
/// that cannot goes on as before. All need the same file, under the same path. Answers of all
/// brokers, by id. Errc::conflict: another broker is asked just now.  [a data shard]
class Replacements {
 public:
  static constexpr std::string_view service_id = "millrace.replacements/1";

  virtual ~Replacements() = default;
  /// See Streams::replace. Restarts of brokers begin with it once it is at every one of them.
  virtual Task<std::vector<ReplacedAt>> replace_operator(std::string stream, std::string step,
                                                         std::string file) = 0;
  /// See AggregateAdmin::replace.
  virtual Task<std::vector<ReplacedAt>> replace_aggregate(std::string aggregate,
                                                          std::string file) = 0;
};

}  // namespace millrace
