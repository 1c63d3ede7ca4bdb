// The broker's settings of groups, parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <millrace/aggregate.h>

#include "consumer/consumer_settings.h"

namespace millrace::consumer_groups {

struct Settings {
  // classic groups
  Duration session_timeout_min{};      ///< group.min.session.timeout.ms
  Duration session_timeout_max{};      ///< group.max.session.timeout.ms
  Duration initial_rebalance_delay{};  ///< group.initial.rebalance.delay.ms
  std::size_t members_max = 0;         ///< group.max.size
  /// message.max.bytes: a group's record must fit the log, and so must what its members say.
  std::size_t message_bytes_max = 0;
  ConsumerSettings consumer;
  // offsets
  std::size_t metadata_bytes_max = 0;   ///< offset.metadata.max.bytes
  Duration offsets_retention{};         ///< offsets.retention.minutes
  Duration retention_check_interval{};  ///< offsets.retention.check.interval.ms

  static Settings read(const Context& context);
};

/// Settings for calls that come by the thousand: read again once they are a second old.
class SettingsCache {
 public:
  const Settings& at(const Context& context);

 private:
  Settings settings_;
  MonoTime valid_until_ = MonoTime::min();
};

/// A number of a setting; `otherwise` where this broker does not know it.
std::int64_t number_of(const Context& context, std::string_view name, std::int64_t otherwise);

}  // namespace millrace::consumer_groups
