// A member of a group of the consumer protocol: what its records say of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <millrace/buffer.h>
#include <millrace/groups.h>

#include "assignment.h"

namespace millrace::consumer_groups {

/// The numbers are those of the records.
enum class MemberState : std::int8_t {
  stable = 0,                 ///< has what it is to have in its epoch
  unrevoked_partitions = 1,   ///< has to give up some before it may go on to the next epoch
  unreleased_partitions = 2,  ///< is in the next epoch; others still have some of its partitions
  unknown = 127,              ///< written by a later version
};

/// Of a member that joined by JoinGroup: what its session is, and what it could be a member of
/// should the group become a classic one again.
struct ClassicMember {
  std::int32_t session_timeout_ms = 0;
  std::vector<GroupProtocol> protocols;  ///< by preference
  friend bool operator==(const ClassicMember& a, const ClassicMember& b);
};

struct MemberMetadata {
  std::optional<std::string> instance_id;
  std::optional<std::string> rack;
  std::string client_id;
  std::string client_host;
  std::vector<std::string> subscribed_names;  ///< sorted, none twice
  std::string subscribed_regex;               ///< empty: none
  std::int32_t rebalance_timeout_ms = -1;
  std::optional<std::string> server_assignor;
  std::optional<ClassicMember> classic;
  friend bool operator==(const MemberMetadata&, const MemberMetadata&) = default;
};

/// Where a member is on its way to its target.
struct CurrentAssignment {
  std::int32_t epoch = 0;  ///< member_epoch_left_static: the instance is away for a while
  std::int32_t previous_epoch = 0;
  MemberState state = MemberState::stable;
  Owned assigned;
  Owned revoking;  ///< still its own until it says otherwise
  friend bool operator==(const CurrentAssignment&, const CurrentAssignment&) = default;

  bool reconciled_to(std::int32_t target_epoch) const noexcept {
    return state == MemberState::stable && epoch == target_epoch;
  }
};

struct ConsumerMember {
  std::string id;
  MemberMetadata metadata;
  CurrentAssignment current;

  bool is_classic() const noexcept { return metadata.classic.has_value(); }
};

inline constexpr std::int32_t member_epoch_join = 0;
inline constexpr std::int32_t member_epoch_leave = -1;
inline constexpr std::int32_t member_epoch_left_static = -2;

}  // namespace millrace::consumer_groups
