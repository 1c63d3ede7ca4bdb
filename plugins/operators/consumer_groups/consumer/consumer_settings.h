// The broker's settings of groups of the consumer protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/aggregate.h>

namespace millrace::consumer_groups {

/// Which way a group may change its protocol while members are in it.
struct MigrationPolicy {
  bool upgrade = true;
  bool downgrade = true;
};

struct ConsumerSettings {
  Duration session_timeout{};          ///< group.consumer.session.timeout.ms
  Duration heartbeat_interval{};       ///< group.consumer.heartbeat.interval.ms
  std::size_t members_max = 0;         ///< group.consumer.max.size
  std::vector<std::string> assignors;  ///< group.consumer.assignors; the first is the default
  MigrationPolicy migration;           ///< group.consumer.migration.policy
  Duration assignment_interval{};      ///< group.consumer.assignment.interval.ms: KIP-1263
  Duration regex_refresh_interval{};   ///< group.consumer.regex.refresh.interval.ms
  // Of what groups have of their own:
  // group.consumer.{min,max}.{session.timeout,heartbeat.interval}.ms
  Duration session_timeout_min{};
  Duration session_timeout_max{};
  Duration heartbeat_interval_min{};
  Duration heartbeat_interval_max{};

  static ConsumerSettings read(const Context& context);
};

/// What of it a group may have for itself (KIP-848), within the broker's bounds.
struct GroupTimes {
  Duration session_timeout{};
  Duration heartbeat_interval{};
  Duration assignment_interval{};
};
/// Under which names a group's own are asked for, with every heartbeat.
struct GroupTimeNames {
  explicit GroupTimeNames(std::string_view group);
  std::string session_timeout;
  std::string heartbeat_interval;
  std::string assignment_interval;
};
/// As they are now: a change counts from the next heartbeat on.
GroupTimes times_of(const GroupTimeNames& names, const ConsumerSettings& settings,
                    const Context& context);

}  // namespace millrace::consumer_groups
