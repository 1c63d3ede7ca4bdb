// Subscriptions by regular expression: RE2, as in Kafka, whose matching time is linear in the name.
// Expressions are bounded in size too, so that none that a client sends can hold a shard up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <millrace/aggregate.h>
#include <millrace/result.h>

namespace millrace::consumer_groups {

/// The topics whose whole name matches, sorted. Errc::invalid_argument says what is wrong with the
/// expression, or what of it is too costly.
Result<std::vector<std::string>> matching_topics(const std::string& regex,
                                                 const ClusterView& cluster);
Result<> check_regex(const std::string& regex);

}  // namespace millrace::consumer_groups
