// What is forgotten: offsets that nobody has committed for long (KIP-211), those of topics that are
// gone, and groups that nothing is left of.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "group.h"
#include "turn.h"

namespace millrace::consumer_groups {

/// Tombstones of one call are one batch, which the log must take: more wait for the next call.
inline constexpr std::size_t tombstone_bytes_max = std::size_t{256} << 10;
inline bool has_room(const Turn& turn) { return turn.emitted_bytes < tombstone_bytes_max; }

/// Emits the end of what has expired, as far as there is room. True when no offset stays.
bool expire_offsets_of(const Group& group, Turn& turn);

/// Topics that were deleted, and where the log was then: what was committed later belongs to a new
/// topic of that name.
using DeletedTopics = std::map<std::string, Offset, std::less<>>;
void drop_topics(const Group& group, const DeletedTopics& deleted, Turn& turn);

/// Emits the end of the group, its offsets and its membership, which is empty.
Result<> remove_group(Group& group, Turn& turn);

}  // namespace millrace::consumer_groups
