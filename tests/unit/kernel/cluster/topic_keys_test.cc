// Topics written to coordination and read back, also those whose keys are more than one commit
// holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/testing/sim_coordination.h>

#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"

namespace millrace::kernel {
namespace {

using testing::SimCoordination;
using testing::SimEnvironment;
using testing::SimWorld;

class TopicKeysTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  TopicKeysTest() {
    auto joined =
        world_.run(node_.control(), [this] { return coordination_->join({.broker_id = 1}); });
    if (joined) lease_ = *std::move(joined);
  }

  template <class F>
  auto run(F make) {
    return world_.run(node_.control(), std::move(make));
  }
  TopicState topic(std::size_t partitions) const {
    TopicState state;
    state.name = "orders";
    state.id.bytes.fill(7);
    for (std::size_t at = 0; at < partitions; ++at) {
      state.partitions.push_back({.leader = 1, .replicas = {1, 2, 3}, .in_sync = {1, 2, 3}});
    }
    return state;
  }
  Result<std::vector<Version>> write(const TopicState& state) {
    return run([&] { return write_topic(*coordination_, state, 1); });
  }
  std::vector<TopicState> read() {
    auto topics = run([this] { return read_topics(*coordination_); });
    EXPECT_TRUE(topics) << to_string(topics.error());
    return topics ? *std::move(topics) : std::vector<TopicState>();
  }
  std::vector<std::string> names(std::string prefix) {
    auto listed = run([&] { return coordination_->list(prefix); });
    return listed ? *std::move(listed) : std::vector<std::string>();
  }
  Result<std::vector<Version>> commit(const Write& one) {
    return run([&] { return coordination_->commit({one}); });
  }

  SimWorld world_{1};
  SimEnvironment& node_ = world_.add_node("b1");
  SimCoordination service_{world_};
  std::unique_ptr<Coordination> coordination_ = service_.connect(node_);
  std::unique_ptr<Lease> lease_;
};

TEST_P(TopicKeysTest, AreReadAsTheyWereWrittenGrownAndRemoved) {
  auto state = topic(GetParam());
  ASSERT_TRUE(write(state));
  ASSERT_EQ(read().size(), 1);
  EXPECT_EQ(read().front().partitions.size(), GetParam());
  const auto again = write(state);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::conflict);

  const auto grown = topic(2 * GetParam());
  const auto first = static_cast<std::int32_t>(GetParam());
  ASSERT_TRUE(run([&] { return write_growth(*coordination_, grown, first, 1); }));
  EXPECT_EQ(read().front().partitions.size(), 2 * GetParam());
  ASSERT_TRUE(run([&] { return undo_growth(*coordination_, state, 2 * first); }));
  EXPECT_EQ(read().front().partitions.size(), GetParam());

  ASSERT_TRUE(run([&] { return erase_topic(*coordination_, state); }));
  EXPECT_TRUE(read().empty());
  EXPECT_TRUE(names("/brokers/topics").empty());
  EXPECT_TRUE(names("/config/topics").empty());
}

TEST_P(TopicKeysTest, ATopicThatWasNotMadeToItsEndIsNone) {
  ASSERT_TRUE(commit({.key = znodes::partition_state("orders", 0), .value = "left behind"}));
  EXPECT_TRUE(read().empty());
  ASSERT_TRUE(write(topic(GetParam())));
  ASSERT_EQ(read().size(), 1);
}

TEST_P(TopicKeysTest, DamageIsNamedAndNothingIsDropped) {
  ASSERT_TRUE(write(topic(GetParam())));
  ASSERT_TRUE(commit({.key = znodes::topic("orders"), .value = "garbage"}));
  const auto topics = run([this] { return read_topics(*coordination_); });
  ASSERT_FALSE(topics);
  EXPECT_EQ(topics.error().code, Errc::corrupt);
  EXPECT_THAT(topics.error().detail, ::testing::HasSubstr("/brokers/topics/orders"));
}

TEST_P(TopicKeysTest, OthersAreReadWithoutTheDamaged) {
  for (const auto* name : {"broken", "orders", "torn", "unset"}) {
    auto one = topic(GetParam());
    one.name = name;
    ASSERT_TRUE(write(one));
  }
  ASSERT_TRUE(commit({.key = znodes::topic("broken"), .value = "garbage"}));
  ASSERT_TRUE(commit({.key = znodes::partition_state("torn", 1), .value = "{}"}));
  ASSERT_TRUE(commit({.key = znodes::topic_config("unset"), .value = "[1,"}));
  std::vector<UnreadableTopic> unreadable;
  const auto topics = run([&] { return read_topics(*coordination_, &unreadable); });
  ASSERT_TRUE(topics) << to_string(topics.error());
  ASSERT_EQ(topics->size(), 1);
  EXPECT_EQ(topics->front().name, "orders");
  ASSERT_EQ(unreadable.size(), 3);
  const std::vector<std::string> keys{znodes::topic("broken"), znodes::partition_state("torn", 1),
                                      znodes::topic_config("unset")};
  for (std::size_t at = 0; at < keys.size(); ++at) {
    EXPECT_THAT(unreadable[at].why.detail, ::testing::HasSubstr(keys[at]));
  }
}

TEST_P(TopicKeysTest, ATopicOfWhichAStateIsMissingIsDamaged) {
  ASSERT_TRUE(write(topic(GetParam())));
  ASSERT_TRUE(run([this] {
    std::vector<Write> gone;
    gone.push_back({.key = znodes::partition_state("orders", 2), .value = {}});
    return coordination_->commit(std::move(gone));
  }));
  std::vector<UnreadableTopic> unreadable;
  ASSERT_TRUE(run([&] { return read_topics(*coordination_, &unreadable); }));
  ASSERT_EQ(unreadable.size(), 1);
  EXPECT_EQ(unreadable.front().name, "orders");
}

// Of 3,000 the keys of the states alone are more than commit_bytes_max.
INSTANTIATE_TEST_SUITE_P(Sizes, TopicKeysTest, ::testing::Values(3, 3000));

}  // namespace
}  // namespace millrace::kernel
