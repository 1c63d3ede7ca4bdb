#include "kernel/cluster/updates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using ::testing::IsEmpty;

TopicState topic_of(const std::string& name, std::uint8_t id, std::vector<std::int32_t> replicas) {
  TopicState topic;
  topic.name = name;
  topic.id.bytes.fill(id);
  topic.partitions.push_back(
      {.leader = replicas.front(), .replicas = replicas, .in_sync = replicas});
  return topic;
}

ClusterUpdate update_of(const std::vector<TopicState>& topics, bool full) {
  ClusterUpdate update;
  update.controller = 3;
  update.full = full;
  update.brokers = {{.id = 1, .epoch = 5, .rack = "r", .endpoints = {{"kafka", {"b1", 9092}}}}};
  for (const auto& topic : topics) update.topics.push_back(to_update(topic));
  return update;
}

std::vector<TopicPartition> gone(const UpdateEffect& effect) {
  std::vector<TopicPartition> ids;
  for (const auto& one : effect.gone) ids.push_back(one.id);
  return ids;
}

TEST(UpdatesTest, WhatIsTakenInIsWhatWasToldOf) {
  auto topic = topic_of("orders", 7, {1, 2});
  topic.configs["retention.ms"] = "5";
  topic.partitions[0].adding = {2};
  ClusterState state;
  const auto effect = take_in(state, update_of({topic}, true), 1);
  EXPECT_EQ(state.controller_id, 3);
  EXPECT_EQ(state.brokers.at(1).epoch, 5);
  ASSERT_NE(state.find("orders"), nullptr);
  EXPECT_EQ(state.find("orders")->partitions, topic.partitions);
  EXPECT_EQ(state.find("orders")->configs, topic.configs);
  EXPECT_EQ(effect.ours, (std::vector<TopicPartition>{{"orders", 0}}));
}

TEST(UpdatesTest, AFullOneForgetsWhatItDoesNotNameAndErasesNothing) {
  ClusterState state;
  take_in(state, update_of({topic_of("orders", 7, {1}), topic_of("bills", 8, {2})}, true), 1);
  const auto effect = take_in(state, update_of({}, true), 1);
  EXPECT_TRUE(state.topics.empty());
  ASSERT_EQ(gone(effect), (std::vector<TopicPartition>{{"orders", 0}}));
  EXPECT_FALSE(effect.gone[0].erase);
}

TEST(UpdatesTest, ADeletedTopicsLogsGo) {
  ClusterState state;
  const auto topic = topic_of("orders", 7, {1});
  take_in(state, update_of({topic}, true), 1);
  auto update = update_of({}, false);
  update.deleted = {{"orders", topic_of("orders", 8, {1}).id}};
  EXPECT_THAT(take_in(state, update, 1).gone, IsEmpty());
  update.deleted = {{"orders", topic.id}};
  const auto effect = take_in(state, update, 1);
  ASSERT_EQ(effect.gone.size(), 1u);
  EXPECT_TRUE(effect.gone[0].erase);
  EXPECT_EQ(state.find("orders"), nullptr);
}

TEST(UpdatesTest, AReplicaThatIsMovedAwayGoes) {
  ClusterState state;
  auto topic = topic_of("orders", 7, {1, 2});
  take_in(state, update_of({topic}, true), 1);
  topic.partitions[0].replicas = {2, 3};
  topic.partitions[0].partition_epoch = 1;
  const auto effect = take_in(state, update_of({topic}, false), 1);
  EXPECT_EQ(gone(effect), (std::vector<TopicPartition>{{"orders", 0}}));
  EXPECT_TRUE(effect.gone[0].erase);
  EXPECT_THAT(effect.ours, IsEmpty());
}

TEST(UpdatesTest, AnOlderStateOfAPartitionIsPassedOver) {
  ClusterState state;
  auto topic = topic_of("orders", 7, {1, 2});
  const auto older = topic;
  topic.partitions[0].leader = 2;
  topic.partitions[0].partition_epoch = 4;
  take_in(state, update_of({topic}, true), 1);
  take_in(state, update_of({older}, false), 1);
  EXPECT_EQ(state.find("orders")->partitions[0].leader, 2);
}

TEST(UpdatesTest, WhoIsNotThereAnyMoreIsGoneUntilItIsBack) {
  ClusterState state;
  take_in(state, update_of({}, true), 1);
  const auto both = state.brokers;
  const auto since = MonoTime() + std::chrono::seconds(5);
  state.brokers.clear();
  note_gone(state, both, since);
  EXPECT_EQ(state.gone.at(1).since, since);
  EXPECT_EQ(state.gone.at(1).last.endpoints, both.at(1).endpoints);
  note_gone(state, {}, since + std::chrono::seconds(1));
  EXPECT_EQ(state.gone.at(1).since, since);
  state.brokers = both;
  note_gone(state, {}, since);
  EXPECT_THAT(state.gone, IsEmpty());
}

TEST(UpdatesTest, SettingsOfBrokersConcernAllThatIsHere) {
  ClusterState state;
  take_in(state,
          update_of({topic_of("a", 7, {1}), topic_of("b", 8, {1}), topic_of("c", 9, {2})}, true),
          1);
  auto update = update_of({}, false);
  update.broker_configs["<default>"] = {{"log.retention.ms", "5"}};
  EXPECT_EQ(take_in(state, update, 1).ours, (std::vector<TopicPartition>{{"a", 0}, {"b", 0}}));
  EXPECT_THAT(take_in(state, update, 1).ours, IsEmpty());
}

}  // namespace
}  // namespace millrace::kernel
