#include "roster.h"

#include <algorithm>
#include <set>
#include <utility>

namespace millrace::consumer_groups {

namespace {

std::size_t bytes_of(const std::vector<GroupProtocol>& protocols,
                     const std::optional<std::string>& instance_id, const ClientName& client) {
  auto bytes = sizeof(Member) + client.id.size() + (instance_id ? instance_id->size() : 0);
  for (const auto& protocol : protocols) {
    bytes += sizeof protocol + protocol.name.size() + protocol.metadata.size();
  }
  return bytes;
}

}  // namespace

std::size_t member_bytes(const Join& ask) {
  return bytes_of(ask.request.protocols, ask.request.instance_id, ask.client);
}

std::size_t member_bytes(const Member& member) {
  return bytes_of(member.protocols, member.instance_id, member.client);
}

bool same_protocols(const std::vector<GroupProtocol>& a, const std::vector<GroupProtocol>& b) {
  return std::ranges::equal(a, b, [](const GroupProtocol& x, const GroupProtocol& y) {
    return x.name == y.name && std::ranges::equal(x.metadata.bytes(), y.metadata.bytes());
  });
}

Member* Roster::find(std::string_view id) {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : &found->second;
}

const Member* Roster::find(std::string_view id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : &found->second;
}

const std::string* Roster::holder_of(std::string_view instance_id) const {
  const auto found = instances_.find(instance_id);
  return found == instances_.end() ? nullptr : &found->second;
}

Member& Roster::add(Member member) {
  if (member.instance_id) instances_.insert_or_assign(*member.instance_id, member.id);
  if (member.joining != ReplyTo::nobody) ++joining_;
  auto id = member.id;
  const auto [at, added] = members_.try_emplace(std::move(id), std::move(member));
  MR_ASSERT(added);
  count_member(at->second, 1);
  return at->second;
}

Member Roster::remove(std::string_view id) {
  const auto found = members_.find(id);
  MR_ASSERT(found != members_.end());
  auto member = std::move(found->second);
  members_.erase(found);
  count_member(member, -1);
  if (member.joining != ReplyTo::nobody) --joining_;
  if (member.instance_id) {
    const auto instance = instances_.find(*member.instance_id);
    if (instance != instances_.end() && instance->second == member.id) instances_.erase(instance);
  }
  return member;
}

void Roster::set_protocols(Member& member, std::vector<GroupProtocol> protocols) {
  count_member(member, -1);
  member.protocols = std::move(protocols);
  count_member(member, 1);
}

void Roster::set_joining(Member& member, ReplyTo to) {
  if (member.joining != ReplyTo::nobody) --joining_;
  member.joining = to;
  if (to != ReplyTo::nobody) ++joining_;
}

bool Roster::any_spoken_by_all(const std::vector<GroupProtocol>& protocols) const {
  return std::ranges::any_of(protocols, [&](const GroupProtocol& protocol) {
    const auto found = speakers_.find(protocol.name);
    return found != speakers_.end() && found->second == members_.size();
  });
}

std::string Roster::elect_protocol() const {
  std::map<std::string_view, std::size_t> votes;
  for (const auto& [id, member] : members_) {
    for (const auto& protocol : member.protocols) {
      const auto found = speakers_.find(protocol.name);
      if (found->second < members_.size()) continue;
      ++votes[found->first];
      break;
    }
  }
  std::string_view elected;
  std::size_t most = 0;
  for (const auto& [name, count] : votes) {
    if (count <= most) continue;
    elected = name;
    most = count;
  }
  return std::string(elected);
}

Duration Roster::longest_rebalance_timeout() const {
  Duration longest{};
  for (const auto& [id, member] : members_) longest = std::max(longest, member.rebalance_timeout);
  return longest;
}

void Roster::count_member(const Member& member, int by) {
  bytes_ += by > 0 ? member_bytes(member) : -member_bytes(member);
  std::set<std::string_view> counted;  // a name that is said twice counts once
  for (const auto& [name, metadata] : member.protocols) {
    if (!counted.insert(name).second) continue;
    auto& count = speakers_[name];
    count += static_cast<std::size_t>(by);
    if (count == 0) speakers_.erase(name);
  }
}

}  // namespace millrace::consumer_groups
