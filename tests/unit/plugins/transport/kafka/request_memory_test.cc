#include "plugins/transport/kafka/request_memory.h"

#include <gtest/gtest.h>

#include "fakes.h"

namespace millrace::kafka_transport::testing {
namespace {

constexpr std::size_t large = 100;  // more than a sixty-fourth of it

class RequestMemoryTest : public ::testing::Test {
 protected:
  Pending<RequestMemory::Lease> acquire(std::size_t bytes) {
    return start(shard, memory.acquire(bytes));
  }
  static RequestMemory::Lease lease_of(Pending<RequestMemory::Lease>& pending) {
    EXPECT_TRUE(pending.is_ready());
    auto lease = pending.await_resume();
    EXPECT_TRUE(lease);
    return *std::move(lease);
  }

  ManualShard shard;
  MemoryBudget budget{1600};
  std::size_t waits = 0;
  RequestMemory memory{budget, [this] { ++waits; }};
};

TEST_F(RequestMemoryTest, SmallRequestsFindRoomHoweverManyLargeOnesWait) {
  auto arriving = acquire(1350);
  auto held = lease_of(arriving);
  EXPECT_EQ(waits, 0);
  auto second = acquire(large);
  auto third = acquire(large);
  EXPECT_FALSE(second.is_ready());
  EXPECT_EQ(memory.waiting(), 2);
  EXPECT_EQ(waits, 2);
  auto small = acquire(25);
  EXPECT_EQ(lease_of(small).frame.bytes(), 25);
  held.arriving.shrink_to(0);
  shard.run();
  EXPECT_EQ(lease_of(second).frame.bytes(), large);
  EXPECT_EQ(lease_of(third).frame.bytes(), large);
}

TEST_F(RequestMemoryTest, ALargeOneThatHasArrivedLeavesTheLineAndKeepsItsMemory) {
  auto arriving = acquire(1000);
  auto held = lease_of(arriving);
  auto second = acquire(500);
  EXPECT_FALSE(second.is_ready());
  held.arriving.shrink_to(0);
  shard.run();
  EXPECT_EQ(budget.bytes_used(), 1500);
  EXPECT_EQ(lease_of(second).frame.bytes(), 500);
}

TEST_F(RequestMemoryTest, OneThatIsLargerThanAllOfItIsLetInAlone) {
  auto small = acquire(25);
  auto before = lease_of(small);
  auto huge = acquire(2000);
  EXPECT_FALSE(huge.is_ready());
  auto behind = acquire(25);
  EXPECT_FALSE(behind.is_ready()) << "what goes on in this broker does not last";
  before.frame.shrink_to(0);
  shard.run();
  {
    const auto alone = lease_of(huge);
    EXPECT_EQ(alone.frame.bytes(), 2000);
    EXPECT_FALSE(behind.is_ready());
  }
  shard.run();
  EXPECT_TRUE(behind.is_ready());
}

}  // namespace
}  // namespace millrace::kafka_transport::testing
