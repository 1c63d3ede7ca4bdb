#include "kernel/broker/fetch_session_cache.h"

#include <gtest/gtest.h>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>

namespace millrace::kernel {
namespace {

using std::chrono::seconds;

class FetchSessionCacheTest : public ::testing::Test {
 protected:
  /// A session of so many partitions, kept if there is room.
  std::int32_t add(std::int32_t size, bool follower = false) {
    FetchRequest request;
    if (follower) request.replica_id = 2;
    auto& topic = request.topics.emplace_back();
    topic.topic.name = "orders";
    for (std::int32_t number = 0; number < size; ++number) {
      topic.partitions.push_back({.partition = number, .from = {0}});
    }
    auto session =
        std::make_shared<FetchSession>(partitions_, *partitions_.shards()[0], std::move(request));
    return cache_.add(session, now_) ? session->id : 0;
  }
  void use(std::int32_t id) { cache_.find(id)->last_used = now_; }

  testing::SimWorld world_{3};
  testing::SimEnvironment& node_ = world_.add_node("b1", 2);
  PartitionMap partitions_{node_, 1 << 20};
  testing::KeptMetrics kept_;
  FetchSessionMetrics metrics_{kept_};
  FetchSessionCache cache_{2, 1, 2, node_.random(), metrics_};
  MonoTime now_{seconds(1000)};
};

TEST_F(FetchSessionCacheTest, AnIdTellsTheShard) {
  for (int i = 0; i < 100; ++i) {
    const auto id = add(1);
    ASSERT_GT(id, 0);
    EXPECT_EQ(FetchSessionCache::shard_of(id, 2), 1u);
    cache_.remove(id);
  }
}

TEST_F(FetchSessionCacheTest, AFullCacheKeepsYoungSessions) {
  const auto first = add(1);
  const auto second = add(1);
  EXPECT_EQ(add(100), 0);
  now_ += seconds(119);
  EXPECT_EQ(add(100), 0);
  EXPECT_TRUE(cache_.find(first));
  EXPECT_TRUE(cache_.find(second));
  EXPECT_EQ(metrics_.open.value(), 2);
  EXPECT_EQ(metrics_.refused.value(), 2U);
  EXPECT_EQ(metrics_.displaced.value(), 0U);
}

TEST_F(FetchSessionCacheTest, AnUnusedSessionGivesWayToAny) {
  const auto unused = add(100);
  const auto used = add(1);
  now_ += seconds(121);
  use(used);
  EXPECT_GT(add(1), 0);
  EXPECT_FALSE(cache_.find(unused));
  EXPECT_TRUE(cache_.find(used));
  EXPECT_EQ(metrics_.displaced.value(), 1U);
  EXPECT_EQ(metrics_.open.value(), 2);
  cache_.clear();
  EXPECT_EQ(metrics_.open.value(), 0);
}

TEST_F(FetchSessionCacheTest, AnOldSessionGivesWayToALargerOne) {
  const auto small = add(3);
  const auto large = add(5);
  now_ += seconds(121);
  use(small);
  use(large);
  EXPECT_EQ(add(3), 0);
  EXPECT_GT(add(4), 0);
  EXPECT_FALSE(cache_.find(small));
  EXPECT_TRUE(cache_.find(large));
}

TEST_F(FetchSessionCacheTest, AFollowerDisplacesAConsumerAtOnce) {
  const auto consumer = add(100);
  const auto follower = add(1, true);
  EXPECT_GT(add(1, true), 0);
  EXPECT_FALSE(cache_.find(consumer));
  EXPECT_TRUE(cache_.find(follower));
  now_ += seconds(121);
  use(follower);
  EXPECT_GT(add(1), 0) << "the other follower has not been used";
  EXPECT_TRUE(cache_.find(follower));
}

}  // namespace
}  // namespace millrace::kernel
