// The walks of kernel/README.md that aggregates take, as skeletons: a transaction that ends, a
// reader that acknowledges what it shares with others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/broker/broker.h"
#include "kernel/partition/payload_reader.h"
#include "kernel/partition/transaction_marker.h"
#include "sim_aggregates.h"

namespace millrace::testing {
namespace {

using std::chrono::seconds;
using ::testing::IsEmpty;

constexpr std::int32_t partitions = 3;

/// The ends of transactions in a partition: "7/0 commit".
std::vector<std::string> markers(SimAggregates& sim, const std::string& topic,
                                 std::int32_t partition) {
  std::vector<std::string> found;
  auto& owner = sim.broker().broker().partitions().owner_of(topic, partition);
  const auto at = owner.find(topic, partition);
  EXPECT_TRUE(at);
  if (!at) return found;
  const auto log = sim.world().run(
      owner.shard(), [&at] { return at->read_own(at->offsets().log_start, 1 << 20); });
  EXPECT_TRUE(log);
  if (!log) return found;
  EXPECT_TRUE(kernel::for_each_batch(*log, [&](const kernel::FoundBatch& batch) {
    if (!batch.header.control()) return true;
    const auto bytes = kernel::copy_range(*log, batch.position, batch.header.total_bytes());
    EXPECT_TRUE(bytes);
    const auto marker = kernel::read_marker(batch.header, *bytes);
    EXPECT_TRUE(marker && *marker);
    found.push_back(std::to_string(batch.header.producer_id) + '/' +
                    std::to_string(batch.header.producer_epoch) +
                    ((*marker)->commit ? " commit" : " abort"));
    return true;
  }));
  return found;
}

void begin_transaction(SimAggregates& sim, const std::string& id) {
  ASSERT_EQ(sim.command("transactions", id, "begin 7 0").words, "ongoing");
  for (std::int32_t at = 0; at < partitions; ++at) {
    const auto said = sim.command("transactions", id, "add orders " + std::to_string(at));
    ASSERT_EQ(said.words, "added");
  }
}

TEST(EndTxnWalkTest, AnswersWhenEveryPartitionHasItsMarker) {
  SimAggregates sim(1);
  ASSERT_TRUE(sim.broker().start());
  sim.create_topic("orders", partitions);
  begin_transaction(sim, "t");
  const TopicPartition last{"orders", partitions - 1};
  const auto hold = [&](bool held) {
    ASSERT_TRUE(sim.world().run(sim.node().control(), [&] {
      return sim.broker().broker().hold_high_watermark(last, held);
    }));
  };
  hold(true);
  const auto answer = sim.begin("transactions", "t", "end commit");
  sim.world().run_for(seconds(3));
  EXPECT_FALSE(answer->has_value());
  EXPECT_EQ(sim.query("transactions", "t").words, "commit");
  EXPECT_EQ(sim.command("transactions", "t", "add orders 0").words, "INVALID_TXN_STATE");
  hold(false);
  ASSERT_TRUE(sim.world().run_until([&] { return answer->has_value(); }, seconds(60)));
  EXPECT_EQ((*answer)->words, "complete");
  for (std::int32_t at = 0; at < partitions; ++at) {
    EXPECT_THAT(markers(sim, "orders", at), ::testing::ElementsAre("7/0 commit"));
  }
  ASSERT_TRUE(sim.broker().stop());
}

// Whenever the power goes: a decision that is in the log is carried out, one that is not is none.
TEST(EndTxnWalkTest, GoesOnWhereItWasAfterAPowerCutAtAnyChangeOfTheDisk) {
  bool ended = false;
  int decided = 0;
  for (std::uint64_t at = 0; !ended && !HasFailure(); ++at) {
    SCOPED_TRACE("cut after change " + std::to_string(at));
    SimAggregates sim(at + 1);
    ASSERT_TRUE(sim.broker().start());
    sim.create_topic("orders", partitions);
    begin_transaction(sim, "t");
    sim.node().files().crash_after(at);
    const auto answer = sim.try_command("transactions", "t", "end abort", seconds(5));
    ended = answer && answer->well;
    sim.broker().crash();
    ASSERT_TRUE(sim.broker().start());
    const auto status = sim.query("transactions", "t").words;
    if (ended) EXPECT_EQ(status, "complete");
    if (status == "ongoing") {
      EXPECT_THAT(markers(sim, "orders", 0), IsEmpty());
    } else {
      ++decided;
      ASSERT_TRUE(sim.world().run_until(
          [&] { return sim.query("transactions", "t").words == "complete"; }, seconds(60)));
      for (std::int32_t n = 0; n < partitions; ++n) {
        // Once, or twice where nobody knew of the first.
        EXPECT_THAT(markers(sim, "orders", n), ::testing::Each("7/0 abort"));
        EXPECT_FALSE(markers(sim, "orders", n).empty());
      }
    }
    ASSERT_TRUE(sim.broker().stop());
  }
  EXPECT_GT(decided, 2);
}

TEST(ShareAcknowledgeWalkTest, HandsRecordsOutOnceUntilALockRunsOut) {
  SimAggregates sim(1);
  ASSERT_TRUE(sim.broker().start());
  sim.create_topic("orders", partitions);
  const auto say = [&](const std::string& words) {
    return sim.command("queues", "orders-1", words).words;
  };
  EXPECT_EQ(say("acquire 3 anna"), "0 2");
  EXPECT_EQ(say("acquire 3 ben"), "3 5");
  EXPECT_EQ(say("acknowledge 0 1 ben"), "INVALID_RECORD_STATE");
  EXPECT_EQ(say("acknowledge 0 1 anna"), "done");
  EXPECT_EQ(say("acknowledge 3 5 ben"), "done");
  sim.world().run_for(seconds(31));
  EXPECT_EQ(say("acquire 3 ben"), "2 2");  // what anna has let go
  // Each partition has its own.
  EXPECT_EQ(sim.command("queues", "orders-0", "acquire 1 anna").words, "0 0");
  ASSERT_TRUE(sim.broker().stop());
}

TEST(ShareAcknowledgeWalkTest, KeepsWhatWasAcknowledgedAndNoLocks) {
  SimAggregates sim(2);
  ASSERT_TRUE(sim.broker().start());
  sim.create_topic("orders", partitions);
  const auto say = [&](const std::string& words) {
    return sim.command("queues", "orders-2", words).words;
  };
  EXPECT_EQ(say("acquire 4 anna"), "0 3");
  EXPECT_EQ(say("acknowledge 0 0 anna"), "done");
  EXPECT_EQ(say("acknowledge 2 2 anna"), "done");
  sim.broker().crash();
  ASSERT_TRUE(sim.broker().start());
  EXPECT_EQ(sim.query("queues", "orders-2").words, "start 1");
  EXPECT_EQ(say("acquire 4 ben"), "1 1");
  EXPECT_EQ(say("acquire 4 ben"), "3 6");
  ASSERT_TRUE(sim.broker().stop());
}

}  // namespace
}  // namespace millrace::testing
