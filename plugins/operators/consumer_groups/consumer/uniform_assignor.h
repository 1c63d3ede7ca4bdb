// Every member gets as many partitions as every other, give or take one, whichever topics they
// are of; and keeps what it has, where that allows it. Where subscriptions differ, the shares are
// as even as moving single partitions can make them. A partition that needs an owner goes to a
// member of its rack first; no partition moves for its rack alone.
#pragma once

#include "assignor.h"

namespace millrace::consumer_groups {

class UniformAssignor final : public Assignor {
 public:
  std::string_view name() const noexcept override { return "uniform"; }
  std::vector<Assignment> assign(std::span<const AssignorMember> members) const override;
};

}  // namespace millrace::consumer_groups
