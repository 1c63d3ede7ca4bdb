// A member of a classic group.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/aggregate.h>
#include <millrace/groups.h>

#include "../messages.h"

namespace millrace::consumer_groups {

struct Member {
  std::string id;
  std::optional<std::string> instance_id;  ///< a static member (KIP-345)
  ClientName client;
  Duration session_timeout{};
  Duration rebalance_timeout{};
  std::vector<GroupProtocol> protocols;  ///< by preference
  Buffer assignment;

  // soft state
  ReplyTo joining = ReplyTo::nobody;
  ReplyTo syncing = ReplyTo::nobody;
  /// Has not had its member id yet: cannot send heartbeats, so it may expire while it waits.
  bool is_new = false;
  /// When it is out, unless it waits for an answer.
  MonoTime expires = MonoTime::max();

  bool waits() const noexcept { return joining != ReplyTo::nobody || syncing != ReplyTo::nobody; }
  bool may_expire() const noexcept { return is_new || !waits(); }
  /// Its metadata for a protocol; nullptr when it does not speak it.
  const Buffer* metadata(std::string_view protocol) const noexcept {
    for (const auto& mine : protocols) {
      if (mine.name == protocol) return &mine.metadata;
    }
    return nullptr;
  }
};

/// What a member makes its group keep, about.
std::size_t member_bytes(const Join& ask);
std::size_t member_bytes(const Member& member);

/// The same protocols with the same metadata, in the same order.
bool same_protocols(const std::vector<GroupProtocol>& a, const std::vector<GroupProtocol>& b);

}  // namespace millrace::consumer_groups
