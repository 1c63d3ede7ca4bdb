// When members of a group have to be heard of again. A heartbeat moves a deadline and no timer: the
// group's one timer comes at the earliest deadline that there was when it was set, and looks.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <millrace/types.h>

namespace millrace::consumer_groups {

/// What a member has to do in time.
enum class Duty : std::uint8_t {
  heartbeat,  ///< be there at all
  revoke,     ///< give up partitions
  rejoin,     ///< of a classic member: join again after it was told so
  sync,       ///< of a classic member: fetch its assignment after it has joined
};

/// Soft state: goes with the leader, and a member of the log without an entry gets a fresh one.
class Liveness {
 public:
  void set(std::string_view member, Duty duty, MonoTime deadline) {
    soonest_set_ = std::min(soonest_set_, deadline);
    deadlines(member)[static_cast<std::size_t>(duty)] = deadline;
  }
  void set_if_absent(std::string_view member, Duty duty, MonoTime deadline) {
    auto& at = deadlines(member)[static_cast<std::size_t>(duty)];
    if (at == never) at = deadline;
  }
  void clear(std::string_view member, Duty duty) {
    if (const auto found = members_.find(member); found != members_.end()) {
      found->second[static_cast<std::size_t>(duty)] = never;
    }
  }
  bool has(std::string_view member, Duty duty) const {
    const auto found = members_.find(member);
    return found != members_.end() && found->second[static_cast<std::size_t>(duty)] != never;
  }
  void forget(std::string_view member) {
    if (const auto found = members_.find(member); found != members_.end()) members_.erase(found);
  }
  template <class Predicate>
  void forget_unless(Predicate known) {
    std::erase_if(members_, [&](const auto& entry) { return !known(entry.first); });
  }

  /// The earliest deadline that was set since this was asked; MonoTime::max(): none was.
  MonoTime take_soonest_set() noexcept { return std::exchange(soonest_set_, never); }

  bool empty() const noexcept { return members_.empty(); }
  bool overdue(std::string_view member, MonoTime now) const { return next_of(member) <= now; }
  MonoTime next_of(std::string_view member) const {
    const auto found = members_.find(member);
    return found == members_.end() ? never : std::ranges::min(found->second);
  }
  /// MonoTime::max(): there is none.
  MonoTime next() const {
    MonoTime first = never;
    for (const auto& [member, at] : members_) first = std::min(first, std::ranges::min(at));
    return first;
  }

 private:
  static constexpr MonoTime never = MonoTime::max();
  using Deadlines = std::array<MonoTime, 4>;

  Deadlines& deadlines(std::string_view member) {
    auto found = members_.find(member);
    if (found == members_.end()) {
      found = members_.emplace(std::string(member), Deadlines{never, never, never, never}).first;
    }
    return found->second;
  }

  std::map<std::string, Deadlines, std::less<>> members_;
  MonoTime soonest_set_ = never;
};

}  // namespace millrace::consumer_groups
