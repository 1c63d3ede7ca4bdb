#include "consumer.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace millrace::consumer_groups::testing {

std::set<Place> places(const std::vector<TopicIdPartitions>& topics) {
  std::set<Place> out;
  for (const auto& [id, partitions] : topics) {
    for (const auto partition : partitions) out.emplace(id, partition);
  }
  return out;
}

std::vector<TopicIdPartitions> topics_of(const std::set<Place>& places) {
  std::map<Uuid, std::vector<std::int32_t>> by_topic;
  for (const auto& [id, partition] : places) by_topic[id].push_back(partition);
  std::vector<TopicIdPartitions> out;
  for (auto& [id, partitions] : by_topic) {
    out.push_back({.topic = id, .partitions = std::move(partitions)});
  }
  return out;
}

ConsumerBench::ConsumerBench() { set("group.consumer.assignment.interval.ms", "0"); }

void ConsumerBench::set(const std::string& setting, const std::string& value) {
  driver.set(setting, value);
  driver.advance(1s);  // a coordinator looks once a second
}

ConsumerHeartbeatAnswer ConsumerBench::send(const ConsumerHeartbeat& request,
                                            const std::string& client_id) {
  const auto token = Bench::send(
      request.group, MemberHeartbeat{.client = {client_id, "/10.0.0.1"}, .request = request});
  // Its records may not have got into the log.
  if (const auto error = driver.error(token); error != ErrorCode::none) return {.error = error};
  return taken<ConsumerHeartbeatAnswer>(token);
}

ConsumerHeartbeat ConsumerBench::request_of(const Consumer& consumer) {
  ConsumerHeartbeat request;
  request.group = consumer.group;
  request.member_id = consumer.id;
  request.member_epoch = consumer.epoch;
  request.instance_id = consumer.instance_id;
  return request;
}

ConsumerHeartbeatAnswer ConsumerBench::join(Consumer& consumer) {
  consumer.epoch = 0;
  consumer.owned.clear();
  consumer.told.clear();
  auto request = request_of(consumer);
  request.rack = consumer.rack;
  request.rebalance_timeout = consumer.rebalance;
  if (consumer.regex) {
    request.subscribed_regex = consumer.regex;
  } else {
    request.subscribed_names = consumer.names;
  }
  request.server_assignor = consumer.assignor;
  request.owned.emplace();
  auto answer = send(request);
  take(consumer, answer);
  return answer;
}

ConsumerHeartbeatAnswer ConsumerBench::beat(Consumer& consumer) {
  auto request = request_of(consumer);
  if (consumer.owned != consumer.told) request.owned = topics_of(consumer.owned);
  auto answer = send(request);
  if (answer.error == ErrorCode::none) consumer.told = consumer.owned;
  take(consumer, answer);
  return answer;
}

void ConsumerBench::take(Consumer& consumer, const ConsumerHeartbeatAnswer& answer) {
  if (answer.error != ErrorCode::none) return;
  if (answer.member_id) consumer.id = *answer.member_id;
  consumer.epoch = answer.member_epoch;
  if (answer.assignment) consumer.assigned = places(*answer.assignment);
}

void ConsumerBench::settle(Consumer& consumer) { consumer.owned = consumer.assigned; }

void ConsumerBench::converge(const std::vector<Consumer*>& consumers) {
  constexpr int rounds_max = 20;
  for (int round = 0; round < rounds_max; ++round) {
    bool news = false;
    for (auto* consumer : consumers) {
      const auto epoch = consumer->epoch;
      const auto answer = beat(*consumer);
      ASSERT_EQ(answer.error, ErrorCode::none) << answer.message;
      news = news || answer.assignment || answer.member_epoch != epoch ||
             consumer->owned != consumer->assigned;
      settle(*consumer);
    }
    if (!news) return;
  }
  ADD_FAILURE() << "still not settled";
}

ConsumerHeartbeatAnswer ConsumerBench::leave(Consumer& consumer, std::int32_t epoch) {
  auto request = request_of(consumer);
  request.member_epoch = epoch;
  const auto answer = send(request);
  consumer.owned.clear();
  return answer;
}

ConsumerGroupDescribed ConsumerBench::described(const std::string& group) {
  return ask<ConsumerGroupDescribed>(group, DescribeConsumers{});
}

}  // namespace millrace::consumer_groups::testing
