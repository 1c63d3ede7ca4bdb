// The topics that groups have committed offsets of, watched for their deletion.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <millrace/aggregate.h>

namespace millrace::consumer_groups {

class TopicsInUse {
 public:
  /// So many partitions of a group more, or less.
  void count(std::string_view topic, int partitions);
  /// The cluster has it, under this id: somebody commits offsets of it.
  void saw(std::string_view topic, const Uuid& id);
  /// Those that were seen and are gone, or have another id now: under the same name there is a new
  /// topic. One that was never seen is not reported: a view may be behind when the log is replayed.
  std::set<std::string, std::less<>> look(const ClusterView& cluster);

 private:
  struct Use {
    std::size_t partitions = 0;  ///< of all groups
    Uuid id;                     ///< as the cluster had it last; none: not seen
  };
  std::map<std::string, Use, std::less<>> topics_;
};

}  // namespace millrace::consumer_groups
