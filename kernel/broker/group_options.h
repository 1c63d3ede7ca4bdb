// The settings that groups have of their own (KIP-848), under Kafka's names. What is not set for a
// group is the broker's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kernel/partition/config_options.h"

namespace millrace::kernel {

struct GroupOption : ConfigOption {
  const char* broker;             ///< the broker's setting that counts where this is not set
  const char* minimum = nullptr;  ///< the broker's settings that bound it; none: its own bounds
  const char* maximum = nullptr;
};

/// By name.  [any thread]
std::span<const GroupOption> group_options() noexcept;
/// nullptr when there is no such setting.
const GroupOption* find_group_option(std::string_view name) noexcept;

inline constexpr std::string_view group_session_timeout = "consumer.session.timeout.ms";
inline constexpr std::string_view group_heartbeat_interval = "consumer.heartbeat.interval.ms";

/// Larger ids are those of no tool; what is kept of each is told to all brokers.
inline constexpr std::size_t configured_group_bytes_max = 1024;

/// As Kafka numbers it: a value that is set for one group.
inline constexpr auto group_config_source = static_cast<millrace::ConfigSource>(8);

}  // namespace millrace::kernel
