// Subscriptions by regular expression: RE2, as in Kafka. Its matching time is linear in the name,
// so that no expression of a client can hold a shard up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <millrace/aggregate.h>
#include <millrace/result.h>

namespace millrace::consumer_groups {

/// The topics whose whole name matches, sorted. Errc::invalid_argument says what is wrong with the
/// expression, or that compiling it takes too much memory.
Result<std::vector<std::string>> matching_topics(const std::string& regex,
                                                 const ClusterView& cluster);
Result<> check_regex(const std::string& regex);

}  // namespace millrace::consumer_groups
