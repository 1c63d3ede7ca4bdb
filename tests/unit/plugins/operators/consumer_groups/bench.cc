#include "bench.h"

#include <algorithm>

namespace millrace::consumer_groups::testing {

Buffer subscription(const std::vector<std::string_view>& topics) {
  kafka::ConsumerProtocolSubscription content;
  content.topics = topics;
  return *encode_value(content, 0);
}

Bench::Bench() : driver(factory, {.partition = {"__consumer_offsets", 0}}) {
  driver.cluster().put("orders", 4);
  driver.cluster().put("bills", 2);
  driver.cluster_changed();
}

void Bench::TearDown() {
  EXPECT_EQ(driver.failures() != 0, log_is_bad) << driver.failure();
  if (driver.loaded()) {
    EXPECT_EQ(*driver.state(), *driver.replayed_state());
    ASSERT_TRUE(driver.take_snapshot());
    const auto before = *driver.state();
    ASSERT_TRUE(driver.reload());
    EXPECT_EQ(*driver.state(), before);
  }
}

ReplyTo Bench::send(const std::string& group, Ask::Body body) {
  return driver.send(group, Ask(std::move(body)));
}

ReplyTo Bench::send_join(const Client& client) {
  Join join;
  join.client = {client.client_id, "/10.0.0.1"};
  join.request = {
      .group = client.group,
      .session_timeout = client.session,
      .rebalance_timeout = client.rebalance,
      .member_id = client.member_id,
      .instance_id = client.instance_id,
      .protocol_type = client.type,
      .protocols = client.protocols,
      .known_member_id_required = client.known_id,
      .skip_assignment = client.skip_assignment,
  };
  return send(client.group, std::move(join));
}

ReplyTo Bench::begin_join(Client& client) {
  if (client.member_id.empty() && !client.instance_id && client.known_id) {
    const auto told = taken<JoinGroupAnswer>(send_join(client));
    EXPECT_EQ(told.error, ErrorCode::member_id_required);
    client.member_id = told.member_id;
  }
  return send_join(client);
}

JoinGroupAnswer Bench::end_join(Client& client, ReplyTo token) {
  auto answer = taken<JoinGroupAnswer>(token);
  if (answer.error == ErrorCode::none) {
    client.member_id = answer.member_id;
    client.generation = answer.generation;
    client.leader = answer.leader;
  }
  return answer;
}

ReplyTo Bench::send_sync(const Client& client, std::vector<GroupAssignment> assignments) {
  return send(client.group, SyncGroupRequest{.group = client.group,
                                             .generation = client.generation,
                                             .member_id = client.member_id,
                                             .instance_id = client.instance_id,
                                             .protocol_type = client.type,
                                             .assignments = std::move(assignments)});
}

ErrorCode Bench::heartbeat(const Client& client) {
  return ask<ErrorCode>(client.group, GroupHeartbeat{client.group, client.generation,
                                                     client.member_id, client.instance_id});
}

LeaveGroupAnswer Bench::leave(const Client& client) {
  return ask<LeaveGroupAnswer>(
      client.group, LeaveGroupRequest{client.group, {{client.member_id, client.instance_id, ""}}});
}

OffsetCommitAnswer Bench::commit(const Client& client, std::int64_t offset,
                                 const std::string& topic, std::int32_t partition) {
  OffsetCommitRequest request{.group = client.group,
                              .generation = client.generation,
                              .member_id = client.member_id,
                              .instance_id = client.instance_id};
  request.topics.push_back({.topic = {.name = topic}});
  request.topics.back().partitions.push_back({.partition = partition, .offset = {offset}});
  return ask<OffsetCommitAnswer>(client.group, std::move(request));
}

ErrorCode Bench::commit_error(const Client& client, std::int64_t offset, const std::string& topic,
                              std::int32_t partition) {
  return commit(client, offset, topic, partition).at(0).partitions.at(0).error;
}

GroupOffsets Bench::offsets(const std::string& group, bool require_stable) {
  return ask<GroupOffsets>(group, FetchOffsets{{.group = group}, require_stable});
}

std::int64_t Bench::offset_of(const std::string& group, const std::string& topic,
                              std::int32_t partition) {
  GroupOffsetsQuery query{.group = group};
  query.topics.emplace().push_back({{.name = topic}, {partition}});
  return ask<GroupOffsets>(group, FetchOffsets{query}).topics.at(0).partitions.at(0).offset.value;
}

std::vector<GroupListed> Bench::list(GroupFilter filter) {
  const auto answer = driver.query({}, ListQuestion(std::move(filter)));
  return dynamic_cast<const Reply<GroupsListed>&>(**answer).value.groups;
}

GroupDescribed Bench::describe(const std::string& group) {
  return ask<GroupDescribed>(group, Describe{});
}

std::string Bench::state(const std::string& group) { return describe(group).state; }

void Bench::make_stable(const std::vector<Client*>& clients) {
  std::vector<ReplyTo> joins;
  joins.reserve(clients.size());
  for (auto* client : clients) joins.push_back(begin_join(*client));
  driver.advance(7s);  // the initial delay, which the second member has made longer
  for (std::size_t at = 0; at < clients.size(); ++at) {
    EXPECT_EQ(end_join(*clients[at], joins[at]).error, ErrorCode::none);
  }
  sync_all(clients);
}

void Bench::rebalance(const std::vector<Client*>& clients) {
  std::vector<ReplyTo> joins;
  joins.reserve(clients.size());
  for (auto* client : clients) joins.push_back(begin_join(*client));
  for (std::size_t at = 0; at < clients.size(); ++at) {
    EXPECT_EQ(end_join(*clients[at], joins[at]).error, ErrorCode::none);
  }
  sync_all(clients);
}

void Bench::sync_all(const std::vector<Client*>& clients) {
  std::vector<GroupAssignment> assignments;
  for (const auto* client : clients) {
    assignments.push_back({client->member_id, Buffer::copy_of("for " + client->client_id)});
  }
  std::vector<ReplyTo> syncs;
  syncs.reserve(clients.size());
  for (const auto* client : clients) {
    syncs.push_back(
        send_sync(*client, client->leads() ? assignments : std::vector<GroupAssignment>{}));
  }
  for (std::size_t at = 0; at < clients.size(); ++at) {
    const auto answer = taken<SyncGroupAnswer>(syncs[at]);
    EXPECT_EQ(answer.error, ErrorCode::none);
    EXPECT_EQ(answer.assignment.text(), "for " + clients[at]->client_id);
  }
}

}  // namespace millrace::consumer_groups::testing
