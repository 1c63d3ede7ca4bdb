#include "migration.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "../classic/classic_group.h"
#include "classic_protocol.h"
#include "fencing.h"
#include "group_records.h"
#include "metadata_hash.h"
#include "subscriptions.h"

namespace millrace::consumer_groups {
namespace {

constexpr std::string_view consumer_protocol = "consumer";
/// As Kafka 2.3 to 4.4 write it.
constexpr std::int16_t classic_record_version = 3;

std::int32_t to_ms(Duration duration) {
  return static_cast<std::int32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

std::unexpected<Refusal> cannot_upgrade(const Draft& draft, const std::string& why) {
  return refuse(ErrorCode::group_id_not_found,
                "Classic group " + draft.group().id() + " cannot become a consumer group: " + why);
}

Result<GroupRecord> classic_end(std::string_view group) {
  kafka::GroupMetadataKey key;
  key.group = group;
  MR_TRY(auto bytes, encode_key(key));
  return GroupRecord{std::move(bytes), std::nullopt};
}

Checked<ConsumerMember> converted(const Draft& draft, const Member& member, std::int32_t generation,
                                  const ClusterView& cluster) {
  const auto subscription = member.protocols.empty()
                                ? std::nullopt
                                : read_subscription(member.protocols.front().metadata, cluster);
  const auto assignment = read_assignment(member.assignment, cluster);
  if (!subscription || !assignment) {
    return cannot_upgrade(draft, "what member " + member.id + " says is not of a consumer.");
  }
  if (assignment->has_user_data) {
    return cannot_upgrade(draft,
                          "its own assignor keeps data in the assignment, which would be lost.");
  }
  ConsumerMember out;
  out.id = member.id;
  out.metadata = {
      .instance_id = member.instance_id,
      .rack = subscription->rack,
      .client_id = member.client.id,
      .client_host = member.client.host,
      .subscribed_names = subscription->topics,
      .subscribed_regex = {},
      .rebalance_timeout_ms = to_ms(member.rebalance_timeout),
      .server_assignor = std::nullopt,
      .classic = ClassicMember{to_ms(member.session_timeout), member.protocols},
  };
  auto& names = out.metadata.subscribed_names;
  std::ranges::sort(names);
  const auto [twice, end] = std::ranges::unique(names);
  names.erase(twice, end);
  out.current.epoch = generation;
  out.current.previous_epoch = generation;
  for (const auto& [topic, partitions] : assignment->partitions) {
    for (const std::int32_t partition : partitions) {
      out.current.assigned[topic][partition] = generation;
    }
  }
  return out;
}

Assignment partitions_of(const Owned& owned) {
  Assignment assignment;
  for (const auto& [topic, partitions] : owned) {
    for (const auto& [partition, epoch] : partitions) assignment[topic].push_back(partition);
  }
  return assignment;
}

/// One that every member speaks; the first that most of them prefer.
std::string common_protocol(const std::vector<const ConsumerMember*>& members) {
  std::map<std::string, std::size_t> speakers;
  for (const auto* member : members) {
    for (const auto& protocol : member->metadata.classic->protocols) ++speakers[protocol.name];
  }
  std::map<std::string, std::size_t> votes;
  for (const auto* member : members) {
    for (const auto& protocol : member->metadata.classic->protocols) {
      if (speakers[protocol.name] != members.size()) continue;
      ++votes[protocol.name];
      break;
    }
  }
  std::string chosen;
  std::size_t most = 0;
  for (const auto& [name, count] : votes) {
    if (count > most) {
      chosen = name;
      most = count;
    }
  }
  return chosen;
}

std::vector<const ConsumerMember*> remaining(const ConsumerGroup& group,
                                             const std::set<std::string, std::less<>>& leaving) {
  std::vector<const ConsumerMember*> members;
  for (const auto& [id, member] : group.members()) {
    if (!leaving.contains(id)) members.push_back(&*member);
  }
  return members;
}

Result<GroupRecord> classic_record(const ConsumerGroup& group,
                                   const std::vector<const ConsumerMember*>& members, Turn& turn) {
  const std::string protocol = common_protocol(members);
  kafka::GroupMetadataValue value;
  value.protocol_type = consumer_protocol;
  value.generation = group.epoch();
  value.protocol = protocol;
  value.leader = members.front()->id;
  value.current_state_timestamp = turn.wall().ms;
  for (const auto* member : members) {
    const auto& protocols = member->metadata.classic->protocols;
    const auto spoken = std::ranges::find(protocols, protocol, &GroupProtocol::name);
    auto& out = value.members.emplace_back();
    out.member_id = member->id;
    out.group_instance_id = member->metadata.instance_id;
    out.client_id = member->metadata.client_id;
    out.client_host = member->metadata.client_host;
    out.rebalance_timeout = member->metadata.rebalance_timeout_ms;
    out.session_timeout = member->metadata.classic->session_timeout_ms;
    if (spoken == protocols.end()) continue;
    out.subscription = spoken->metadata;
    MR_TRY(out.assignment,
           write_assignment(member->current.assigned, subscription_version(spoken->metadata),
                            turn.context.cluster()));
  }
  kafka::GroupMetadataKey key;
  key.group = group.id();
  MR_TRY(auto key_bytes, encode_key(key));
  MR_TRY(auto value_bytes, encode_value(value, classic_record_version));
  return GroupRecord{std::move(key_bytes), std::move(value_bytes)};
}

}  // namespace

Checked<> upgrade(Draft& draft, const ClassicGroup& classic, Turn& turn) {
  if (!turn.settings.consumer.migration.upgrade) {
    return cannot_upgrade(draft, "group.consumer.migration.policy does not let it.");
  }
  if (classic.protocol_type() != consumer_protocol) {
    return cannot_upgrade(draft, "its members are no consumers.");
  }
  if (classic.roster().size() > turn.settings.consumer.members_max) {
    return cannot_upgrade(draft, "it has more members than group.consumer.max.size.");
  }
  const ClusterView& cluster = turn.context.cluster();
  std::vector<ConsumerMember> members;
  for (const auto& [id, member] : classic.roster().members()) {
    // Who does not know its member id yet is told to join again, and comes as another.
    if (member.is_new) continue;
    auto consumer = converted(draft, member, classic.generation(), cluster);
    if (!consumer) return std::unexpected(std::move(consumer).error());
    members.push_back(std::move(*consumer));
  }

  const std::string group = draft.group().id();
  if (classic.is_recorded()) draft.add_unseen(classic_end(group));
  for (const auto& member : members) {
    draft.add(record::member_metadata(group, member.id, member.metadata));
  }
  draft.add(record::group_epoch(group, classic.generation(),
                                metadata_hash(subscribed_topics(draft.group()), cluster)));
  for (const auto& member : members) {
    draft.add(record::target(group, member.id, partitions_of(member.current.assigned)));
  }
  draft.add(record::target_epoch(group, classic.generation(), 0));
  for (const auto& member : members) draft.add(record::current(group, member.id, member.current));
  return {};
}

bool may_downgrade(const ConsumerGroup& group, const std::set<std::string, std::less<>>& leaving,
                   const Turn& turn) {
  if (!turn.settings.consumer.migration.downgrade) return false;
  const auto members = remaining(group, leaving);
  return !members.empty() && members.size() <= turn.settings.members_max &&
         std::ranges::all_of(members, &ConsumerMember::is_classic) &&
         !common_protocol(members).empty();
}

void downgrade(Draft& draft, const std::set<std::string, std::less<>>& leaving, Turn& turn) {
  auto successor = classic_record(draft.group(), remaining(draft.group(), leaving), turn);
  end_group(draft);
  draft.add_unseen(std::move(successor));
  turn.context.set_timer(timer_of(draft.group().id()), Duration::zero());
}

void fence_or_downgrade(Draft& draft, const std::set<std::string, std::less<>>& leaving,
                        Turn& turn) {
  if (may_downgrade(draft.group(), leaving, turn)) {
    downgrade(draft, leaving, turn);
  } else {
    fence(draft, leaving, turn.context.cluster());
  }
}

}  // namespace millrace::consumer_groups
