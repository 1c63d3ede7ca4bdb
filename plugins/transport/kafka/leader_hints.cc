#include "leader_hints.h"

#include <algorithm>

#include "request.h"

namespace millrace::kafka_transport {
namespace {

bool is_same(const TopicName& asked, const TopicName& found) {
  return asked.id.is_none() ? asked.name == found.name : asked.id == found.id;
}

}  // namespace

void LeaderHints::want(const TopicName& topic) {
  const auto asked = [&](const TopicName& one) {
    return one.id == topic.id && one.name == topic.name;
  };
  if (std::ranges::any_of(wanted_, asked)) return;
  wanted_.push_back(topic);
}

Task<> LeaderHints::find(Request& request) {
  MetadataRequest ask_leaders{.topics = wanted_};
  for (auto& topic : *ask_leaders.topics) {
    if (!topic.id.is_none()) topic.name.clear();
  }
  auto asking = request.broker.metadata(request.session, std::move(ask_leaders));
  MR_CO_TRY(found_, co_await std::move(asking));
  co_return {};
}

const PartitionInfo* LeaderHints::leader_of(const TopicName& topic, std::int32_t partition) const {
  for (const auto& known : found_.topics) {
    if (!is_same(topic, known.topic)) continue;
    const auto at = std::ranges::find(known.partitions, partition, &PartitionInfo::partition);
    return at != known.partitions.end() && at->leader >= 0 ? &*at : nullptr;
  }
  return nullptr;
}

bool LeaderHints::leads(std::int32_t broker) const {
  return std::ranges::any_of(found_.topics, [&](const TopicInfo& topic) {
    return std::ranges::find(topic.partitions, broker, &PartitionInfo::leader) !=
           topic.partitions.end();
  });
}

}  // namespace millrace::kafka_transport
