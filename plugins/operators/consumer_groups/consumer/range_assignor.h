// Topics of the same size with the same subscribers are divided alike: whoever has partition 3 of
// one has partition 3 of all of them, so that what was written with the same key can be joined.
// From nothing, members get ranges in order; later they keep what they have where the sizes of
// their shares allow it. New partitions go to a member of their rack where all topics agree.
#pragma once

#include "assignor.h"

namespace millrace::consumer_groups {

class RangeAssignor final : public Assignor {
 public:
  std::string_view name() const noexcept override { return "range"; }
  std::vector<Assignment> assign(std::span<const AssignorMember> members) const override;
};

}  // namespace millrace::consumer_groups
