// The records of a group of the consumer protocol, as Kafka 4.4 writes them.
#pragma once

#include <cstdint>
#include <string_view>

#include <millrace/result.h>

#include "consumer_group.h"

namespace millrace::consumer_groups::record {

// Each fails with Errc::invalid_argument where a string is too long for the format.
Result<GroupRecord> group_epoch(std::string_view group, std::int32_t epoch,
                                std::int64_t metadata_hash);
Result<GroupRecord> member_metadata(std::string_view group, std::string_view member,
                                    const MemberMetadata& metadata);
Result<GroupRecord> target_epoch(std::string_view group, std::int32_t epoch,
                                 std::int64_t timestamp);
Result<GroupRecord> target(std::string_view group, std::string_view member,
                           const Assignment& assignment);
Result<GroupRecord> current(std::string_view group, std::string_view member,
                            const CurrentAssignment& assignment);
Result<GroupRecord> regex(std::string_view group, std::string_view regex,
                          const ResolvedRegex& resolved);

/// As good as Kafka 3's: what it held is not used.
Result<GroupRecord> partition_metadata(std::string_view group);

Result<GroupRecord> group_epoch_end(std::string_view group);
Result<GroupRecord> partition_metadata_end(std::string_view group);
Result<GroupRecord> member_metadata_end(std::string_view group, std::string_view member);
Result<GroupRecord> target_epoch_end(std::string_view group);
Result<GroupRecord> target_end(std::string_view group, std::string_view member);
Result<GroupRecord> current_end(std::string_view group, std::string_view member);
Result<GroupRecord> regex_end(std::string_view group, std::string_view regex);

}  // namespace millrace::consumer_groups::record
