// What is forgotten: offsets that nobody has committed for long (KIP-211), those of topics that are
// gone, and groups that nothing is left of.
#pragma once

#include <map>
#include <string>

#include "group.h"
#include "turn.h"

namespace millrace::consumer_groups {

/// Emits the end of what has expired. True when the group has no offset that stays.
bool expire_offsets_of(const Group& group, Turn& turn);

/// Topics that were deleted, with the id of the one that has the name now; none: there is none.
using DeletedTopics = std::map<std::string, Uuid, std::less<>>;
void drop_topics(const Group& group, const DeletedTopics& deleted, Turn& turn);

/// Emits the end of the group, its offsets and its membership, which is empty.
Result<> remove_group(Group& group, Turn& turn);

}  // namespace millrace::consumer_groups
