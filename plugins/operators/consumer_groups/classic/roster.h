// The members of a classic group, with what is counted over all of them kept up to date: who waits
// for the rebalance, which protocols everybody speaks, whose instance id is whose.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "member.h"

namespace millrace::consumer_groups {

class Roster {
 public:
  using Members = std::map<std::string, Member, std::less<>>;

  const Members& members() const noexcept { return members_; }
  std::size_t size() const noexcept { return members_.size(); }
  bool empty() const noexcept { return members_.empty(); }

  Member* find(std::string_view id);
  const Member* find(std::string_view id) const;
  /// The member id of a static member; nullptr when there is none.
  const std::string* holder_of(std::string_view instance_id) const;

  Member& add(Member member);
  /// The member, out of the group; its waits are for the caller to answer.
  Member remove(std::string_view id);
  void set_protocols(Member& member, std::vector<GroupProtocol> protocols);
  void set_joining(Member& member, ReplyTo to);
  /// Those that have rejoined in this rebalance.
  std::size_t joining() const noexcept { return joining_; }
  /// member_bytes() of all.
  std::size_t bytes() const noexcept { return bytes_; }

  /// Whether one of them is spoken by every member.
  bool any_spoken_by_all(const std::vector<GroupProtocol>& protocols) const;
  /// Each member votes for the first of its protocols that all speak; the most votes win, of equals
  /// the name that sorts first. Empty when there is none.
  std::string elect_protocol() const;
  Duration longest_rebalance_timeout() const;

  /// For walking over all and changing what is not counted.
  Members& unguarded() noexcept { return members_; }

 private:
  void count_member(const Member& member, int by);

  Members members_;
  std::map<std::string, std::string, std::less<>> instances_;
  std::map<std::string, std::size_t, std::less<>> speakers_;  // members by protocol
  std::size_t joining_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace millrace::consumer_groups
