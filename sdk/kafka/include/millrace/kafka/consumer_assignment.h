// What a consumer of the classic protocol was given, which travels as bytes that only consumers
// read.
#pragma once

#include <optional>
#include <vector>

#include <millrace/buffer.h>
#include <millrace/types.h>

namespace millrace::kafka {

/// Sorted. Empty bytes are an empty assignment, as members have it during a rebalance; none:
/// the bytes are not what consumers write. A newer version has its fields behind those of the older
/// ones, so that it is read as well.
std::optional<std::vector<TopicPartition>> read_consumer_assignment(const Buffer& bytes);

}  // namespace millrace::kafka
