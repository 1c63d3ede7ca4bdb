#include "kernel/cluster/cluster_state.h"

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

TopicState topic_of(std::string name, std::uint8_t id) {
  TopicState topic;
  topic.name = std::move(name);
  topic.id.bytes[0] = id;
  return topic;
}

TEST(ClusterStateTest, FindsATopicByNameOrById) {
  ClusterState cluster;
  cluster.put(topic_of("a", 1));
  cluster.put(topic_of("b", 2));
  EXPECT_EQ(cluster.find(TopicName{"a", {}})->name, "a");
  EXPECT_EQ(cluster.find(TopicName{"", topic_of("", 2).id})->name, "b");
  EXPECT_EQ(cluster.find(TopicName{"", topic_of("", 3).id}), nullptr);
  EXPECT_EQ(cluster.find("c"), nullptr);
}

TEST(ClusterStateTest, ForgetsTheIdOfARemovedTopic) {
  ClusterState cluster;
  cluster.put(topic_of("a", 1));
  cluster.remove("a");
  cluster.put(topic_of("a", 2));
  EXPECT_EQ(cluster.find(TopicName{"", topic_of("", 1).id}), nullptr);
  EXPECT_EQ(cluster.find(TopicName{"", topic_of("", 2).id})->name, "a");
}

TEST(ClusterStateTest, ASnapshotDoesNotChangeWithItsSource) {
  ClusterState cluster;
  cluster.put(topic_of("a", 1));
  const auto snapshot = cluster;
  cluster.remove("a");
  EXPECT_NE(snapshot.find("a"), nullptr);
}

}  // namespace
}  // namespace millrace::kernel
