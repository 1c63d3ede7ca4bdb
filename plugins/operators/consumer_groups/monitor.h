// What operators of brokers are told of groups: metrics, and lines about what is refused.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <millrace/observe.h>
#include <millrace/types.h>

#include "group.h"

namespace millrace::consumer_groups {

/// One for all coordinators of a broker, which it outlives.  [any thread]
class Monitor {
 public:
  Monitor(Log log, Metrics& metrics);

  /// Counts what has become of `group`, by `at`; call it after whatever may have changed it. A
  /// rebalance lasts from the state in which members wait for each other until all have settled.
  void count(Group& group, Timestamp at);
  /// It is not here any more.
  void forget(Group& group);
  void committed() noexcept { commits_.add(); }

  /// A member was refused because of what it, or its group, takes. One line in a while for all.
  void too_large(std::string_view group, std::string_view why, std::size_t bytes,
                 std::size_t bytes_max, MonoTime now);

 private:
  struct OfProtocol {
    std::map<std::string, Gauge*, std::less<>> groups;  ///< by state
    Gauge& members;
    Counter& rebalances;
    Histogram& rebalance_seconds;
  };

  static OfProtocol register_for(Metrics& metrics, Membership::Type type);
  /// To the gauges.
  void add(const Counted& counted, std::int64_t by);

  const Log log_;
  OfProtocol classic_;
  OfProtocol consumer_;
  Counter& commits_;
  std::atomic<MonoTime> quiet_until_{MonoTime::min()};
  std::atomic<std::uint64_t> not_told_{0};
};

}  // namespace millrace::consumer_groups
