// The broker's settings of groups of the consumer protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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

  static ConsumerSettings read(const Context& context);
};

}  // namespace millrace::consumer_groups
