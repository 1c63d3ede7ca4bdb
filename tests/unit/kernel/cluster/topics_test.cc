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
  const auto planned = plan({.name = "n", .assignments = {{0, {3, 1}}, {1, {2, 3}}}});
  ASSERT_FALSE(planned.refusal);
  EXPECT_EQ(planned.topic.partitions[0].leader, 3);
  EXPECT_EQ(planned.topic.partitions[1].replicas, (std::vector<std::int32_t>{2, 3}));
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

TEST_F(PlanTopicTest, ReplicasOfAnAssignmentAreAsManyInEachPartition) {
  const auto planned = plan({.name = "n", .assignments = {{0, {3, 1}}, {1, {2}}}});
  ASSERT_TRUE(planned.refusal);
  EXPECT_EQ(planned.refusal->error, ErrorCode::invalid_replica_assignment);
  EXPECT_EQ(planned.refusal->message,
            "The manual partition assignment includes a partition with 1 replica(s), but this is "
            "not consistent with previous partitions, which have 2 replica(s).");
}

class PlanGrowthTest : public PlanTopicTest {
 protected:
  PlanGrowthTest() {
    auto planned = plan({.name = "grows", .partitions = 2, .replication_factor = 2});
    cluster_.put(planned.topic);
  }
  ErrorCode growth_refused(TopicGrowth wanted) {
    const auto planned = plan_growth(wanted, cluster_);
    return planned.refusal ? planned.refusal->error : ErrorCode::none;
  }
};

TEST_F(PlanGrowthTest, KeepsWhatIsThereAndPlacesTheRest) {
  const auto before = *cluster_.find("grows");
  const auto planned = plan_growth({.name = "grows", .partitions = 7}, cluster_);
  ASSERT_FALSE(planned.refusal);
  EXPECT_EQ(planned.topic.id, before.id);
  ASSERT_EQ(planned.topic.partitions.size(), 7u);
  EXPECT_EQ(planned.topic.partitions[1].replicas, before.partitions[1].replicas);
  for (const auto& partition : planned.topic.partitions) {
    EXPECT_EQ(partition.replicas.size(), 2u);
    EXPECT_NE(partition.replicas[0], partition.replicas[1]);
  }
}

TEST_F(PlanGrowthTest, PutsNothingOnADrainedBroker) {
  const auto planned =
      plan_growth({.name = "grows", .partitions = 9}, cluster_, {{"cluster.drain.brokers", "1"}});
  ASSERT_FALSE(planned.refusal);
  for (std::size_t at = 2; at < 9; ++at) {
    EXPECT_EQ(std::ranges::count(planned.topic.partitions[at].replicas, 1), 0);
  }
}

TEST_F(PlanGrowthTest, FollowsAssignmentsOfTheNewPartitions) {
  const auto planned =
      plan_growth({.name = "grows", .partitions = 3, .assignments = {{{3, 2}}}}, cluster_);
  ASSERT_FALSE(planned.refusal);
  EXPECT_EQ(planned.topic.partitions[2].replicas, (std::vector<std::int32_t>{3, 2}));
  EXPECT_EQ(planned.topic.partitions[2].leader, 3);
}

TEST_F(PlanGrowthTest, RefusesWhatCannotBe) {
  EXPECT_EQ(growth_refused({.name = "none", .partitions = 3}),
            ErrorCode::unknown_topic_or_partition);
  for (const std::int32_t count : {-1, 0, 1, 2, 2'000'000'000}) {
    EXPECT_EQ(growth_refused({.name = "grows", .partitions = count}),
              ErrorCode::invalid_partitions);
  }
  const auto assigned = [&](std::vector<std::vector<std::int32_t>> assignments) {
    return growth_refused(
        {.name = "grows", .partitions = 3, .assignments = std::move(assignments)});
  };
  EXPECT_EQ(assigned({}), ErrorCode::invalid_replica_assignment);
  EXPECT_EQ(assigned({{1, 2}, {2, 3}}), ErrorCode::invalid_replica_assignment);
  EXPECT_EQ(assigned({{1}}), ErrorCode::invalid_replica_assignment);
  EXPECT_EQ(assigned({{1, 1}}), ErrorCode::invalid_replica_assignment);
  EXPECT_EQ(assigned({{1, 9}}), ErrorCode::invalid_replica_assignment);
  EXPECT_EQ(assigned({{}}), ErrorCode::invalid_replica_assignment);
  EXPECT_EQ(assigned({{1, 2}}), ErrorCode::none);
}

}  // namespace
}  // namespace millrace::kernel
