#include "kernel/cluster/topics.h"

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

class CountingRandom final : public Random {
 public:
  void fill(MutableBytes bytes) override {
    for (auto& byte : bytes) byte = static_cast<std::byte>(++count_);
  }

 private:
  int count_ = 0;
};

class PlanTopicTest : public ::testing::Test {
 protected:
  PlanTopicTest() {
    for (const std::int32_t id : {1, 2, 3}) cluster_.brokers[id] = BrokerState{.id = id};
    TopicState existing;
    existing.name = "a.b";
    cluster_.put(existing);
  }

  Planned plan(NewTopic wanted) { return plan_topic(wanted, cluster_, defaults_, random_); }
  ErrorCode refused(NewTopic wanted) {
    const auto planned = plan(std::move(wanted));
    if (planned.refusal) {
      EXPECT_FALSE(planned.refusal->message.empty());
      return planned.refusal->error;
    }
    return ErrorCode::none;
  }

  ClusterState cluster_;
  std::map<std::string, std::string> defaults_;
  CountingRandom random_;
};

TEST_F(PlanTopicTest, TakesPartitionsAndReplicasFromTheDefaults) {
  defaults_ = {{"num.partitions", "4"}, {"default.replication.factor", "2"}};
  const auto planned = plan({.name = "new"});
  ASSERT_FALSE(planned.refusal);
  ASSERT_EQ(planned.topic.partitions.size(), 4u);
  EXPECT_EQ(planned.topic.partitions[2].replicas.size(), 2u);
  EXPECT_FALSE(planned.topic.id.is_none());
}

TEST_F(PlanTopicTest, PutsReplicasOfAPartitionOnDifferentBrokers) {
  const auto planned = plan({.name = "new", .partitions = 7, .replication_factor = 3});
  ASSERT_FALSE(planned.refusal);
  for (const auto& partition : planned.topic.partitions) {
    auto replicas = partition.replicas;
    std::ranges::sort(replicas);
    EXPECT_EQ(replicas, (std::vector<std::int32_t>{1, 2, 3}));
    EXPECT_EQ(partition.leader, partition.replicas.front());
  }
}

TEST_F(PlanTopicTest, RefusesNamesAsKafkaDoes) {
  for (const std::string name : {"", ".", "..", "a b", "a/b", "\xc3\xa4"}) {
    EXPECT_EQ(refused({.name = name}), ErrorCode::invalid_topic_exception) << name;
  }
  EXPECT_EQ(refused({.name = std::string(250, 'a')}), ErrorCode::invalid_topic_exception);
  EXPECT_EQ(refused({.name = std::string(249, 'a')}), ErrorCode::none);
  EXPECT_EQ(refused({.name = "a.b"}), ErrorCode::topic_already_exists);
  EXPECT_EQ(refused({.name = "a_b"}), ErrorCode::invalid_topic_exception);
}

TEST_F(PlanTopicTest, RefusesNumbersThatCannotBe) {
  EXPECT_EQ(refused({.name = "n", .partitions = 0}), ErrorCode::invalid_partitions);
  EXPECT_EQ(refused({.name = "n", .partitions = -2}), ErrorCode::invalid_partitions);
  EXPECT_EQ(refused({.name = "n", .partitions = 2'000'000'000}), ErrorCode::invalid_partitions);
  EXPECT_EQ(refused({.name = "n", .partitions = 1, .replication_factor = 4}),
            ErrorCode::invalid_replication_factor);
  EXPECT_EQ(refused({.name = "n", .partitions = 1, .replication_factor = 0}),
            ErrorCode::invalid_replication_factor);
}

TEST_F(PlanTopicTest, FollowsAnAssignment) {
  const auto planned = plan({.name = "n", .assignments = {{0, {3, 1}}, {1, {2}}}});
  ASSERT_FALSE(planned.refusal);
  EXPECT_EQ(planned.topic.partitions[0].leader, 3);
  EXPECT_EQ(planned.topic.partitions[1].replicas, (std::vector<std::int32_t>{2}));
}

TEST_F(PlanTopicTest, RefusesAssignmentsThatCannotBe) {
  EXPECT_EQ(refused({.name = "n", .assignments = {{0, {1}}, {2, {1}}}}),
            ErrorCode::invalid_replica_assignment);
  EXPECT_EQ(refused({.name = "n", .assignments = {{0, {1, 1}}}}),
            ErrorCode::invalid_replica_assignment);
  EXPECT_EQ(refused({.name = "n", .assignments = {{0, {9}}}}),
            ErrorCode::invalid_replica_assignment);
  EXPECT_EQ(refused({.name = "n", .assignments = {{0, {}}}}),
            ErrorCode::invalid_replica_assignment);
  EXPECT_EQ(refused({.name = "n", .partitions = 1, .assignments = {{0, {1}}}}),
            ErrorCode::invalid_request);
}

TEST_F(PlanTopicTest, ChecksSettings) {
  EXPECT_EQ(refused({.name = "n", .configs = {{"retention.ms", "1000"}}}), ErrorCode::none);
  EXPECT_EQ(refused({.name = "n", .configs = {{"retention.ms", "soon"}}}),
            ErrorCode::invalid_config);
  EXPECT_EQ(refused({.name = "n", .configs = {{"retention.msec", "1"}}}),
            ErrorCode::invalid_config);
  EXPECT_EQ(refused({.name = "n", .configs = {{"retention.ms", std::nullopt}}}),
            ErrorCode::invalid_config);
}

}  // namespace
}  // namespace millrace::kernel
