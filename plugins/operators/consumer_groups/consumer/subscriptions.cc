#include "subscriptions.h"

#include <algorithm>

#include "group_records.h"
#include "metadata_hash.h"
#include "regex.h"

namespace millrace::consumer_groups {
namespace {

/// As Kafka counts since KIP-1263: 1 is the epoch of the assignment before the first.
constexpr std::int32_t first_group_epoch = 2;

}  // namespace

std::set<std::string, std::less<>> subscribed_topics(const ConsumerGroup& group) {
  std::set<std::string, std::less<>> topics;
  std::set<std::string_view> regexes;
  for (const auto& [id, member] : group.members()) {
    topics.insert(member->metadata.subscribed_names.begin(),
                  member->metadata.subscribed_names.end());
    if (!member->metadata.subscribed_regex.empty())
      regexes.insert(member->metadata.subscribed_regex);
  }
  for (const auto regex : regexes) {
    const auto found = group.resolved().find(regex);
    if (found == group.resolved().end()) continue;
    topics.insert(found->second.topics.begin(), found->second.topics.end());
  }
  return topics;
}

std::vector<const ClusterTopic*> topics_of(const MemberMetadata& metadata,
                                           const ConsumerGroup::Regexes& resolved,
                                           const ClusterView& cluster) {
  std::vector<const ClusterTopic*> topics;
  for (const auto& name : metadata.subscribed_names) {
    if (const auto* topic = cluster.find(name)) topics.push_back(topic);
  }
  const auto regex = resolved.find(metadata.subscribed_regex);
  if (metadata.subscribed_regex.empty() || regex == resolved.end()) return topics;
  for (const auto& name : regex->second.topics) {
    if (std::ranges::binary_search(metadata.subscribed_names, name)) continue;
    if (const auto* topic = cluster.find(name)) topics.push_back(topic);
  }
  return topics;
}

bool refresh_regexes(Draft& draft, bool all, const ClusterView& cluster, Timestamp wall) {
  std::set<std::string> wanted;
  for (const auto& [id, member] : draft.group().members()) {
    if (!member->metadata.subscribed_regex.empty())
      wanted.insert(member->metadata.subscribed_regex);
  }
  std::vector<std::string> unwanted;
  for (const auto& [regex, resolved] : draft.group().resolved()) {
    if (!wanted.contains(regex)) unwanted.push_back(regex);
  }
  bool changed = false;
  for (const auto& regex : unwanted) {
    draft.add(record::regex_end(draft.group().id(), regex));
    changed = true;
  }
  for (const auto& regex : wanted) {
    const auto known = draft.group().resolved().find(regex);
    const bool resolved = known != draft.group().resolved().end();
    if (resolved && !all) continue;
    auto topics = matching_topics(regex, cluster);
    if (!topics || (resolved && known->second.topics == *topics)) continue;
    draft.add(record::regex(
        draft.group().id(), regex,
        {.topics = std::move(*topics), .version = cluster.version(), .timestamp = wall.ms}));
    changed = true;
  }
  return changed;
}

void bump_group_epoch(Draft& draft, const ClusterView& cluster) {
  const ConsumerGroup& group = draft.group();
  const std::int32_t epoch = group.epoch() == 0 ? first_group_epoch : group.epoch() + 1;
  const bool has_partition_metadata = group.has_partition_metadata();
  draft.add(
      record::group_epoch(group.id(), epoch, metadata_hash(subscribed_topics(group), cluster)));
  if (has_partition_metadata) draft.add(record::partition_metadata_end(draft.group().id()));
}

}  // namespace millrace::consumer_groups
