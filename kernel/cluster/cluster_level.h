// The level of a cluster: what its brokers may store and say to each other beyond what each value
// and each message tells of itself. A broker of a version that does not know the level stays
// outside. packaging/doc/upgrades.md has the policy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <millrace/coordination.h>

namespace millrace::kernel {

/// Which levels this version works at. 1 is all that there was.
inline constexpr std::int64_t level_known_min = 1;
inline constexpr std::int64_t level_known_max = 1;

inline constexpr std::string_view level_key = "/millrace/level";
/// The name under which a broker's registration tells the two, where Kafka tells of features.
inline constexpr std::string_view level_feature = "millrace.level";

std::string encode_level(std::int64_t level);
Result<std::int64_t> decode_level(std::string_view text);

/// Reads the cluster's level, or makes it the first one. Errc::incompatible where this version does
/// not know it.
Task<> check_level(Coordination& coordination);

}  // namespace millrace::kernel
