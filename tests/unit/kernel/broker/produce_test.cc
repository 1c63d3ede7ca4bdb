#include "broker_fixture.h"

namespace millrace::kernel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ProduceTest : public BrokerTest {
 protected:
  std::vector<std::string> all(const std::string& topic, std::int32_t partition) {
    const auto fetched =
        fetch(0, fetch_request(topic, {{.partition = partition, .from = Offset{0}}}));
    EXPECT_TRUE(fetched);
    return values_of(fetched->topics[0].partitions[0]);
  }
};

TEST_F(ProduceTest, AnswersPartitionsOfBothShardsInRequestOrder) {
  create("orders", 4);
  for (const std::size_t shard : {0, 1}) {
    const auto answer = produce(shard, produce_request("orders", {3, 0, 2, 1}, "x"));
    ASSERT_TRUE(answer) << to_string(answer.error());
    const auto& partitions = answer->topics.at(0).partitions;
    ASSERT_EQ(partitions.size(), 4u);
    const std::int32_t expected[] = {3, 0, 2, 1};
    for (std::size_t at = 0; at < 4; ++at) {
      EXPECT_EQ(partitions[at].partition, expected[at]);
      EXPECT_EQ(partitions[at].error, ErrorCode::none);
      EXPECT_EQ(partitions[at].base_offset, Offset{static_cast<std::int64_t>(shard)});
    }
  }
}

TEST_F(ProduceTest, RefusesWhatItDoesNotKnowAndServesTheRest) {
  create("orders", 1);
  auto request = produce_request("orders", {0, 7, -1}, "x");
  request.topics.push_back(produce_request("nowhere", {0}, "x").topics[0]);
  auto by_id = produce_request("", {0}, "x").topics[0];
  by_id.topic.id.bytes[0] = 9;
  request.topics.push_back(by_id);
  const auto answer = produce(0, std::move(request));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->topics[0].partitions[0].error, ErrorCode::none);
  EXPECT_EQ(answer->topics[0].partitions[1].error, ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(answer->topics[0].partitions[2].error, ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(answer->topics[1].partitions[0].error, ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(answer->topics[2].partitions[0].error, ErrorCode::unknown_topic_id);
}

// A pipelined acks=all produce over two shards: the second request begins when the first is
// dispatched, long before it is done.
TEST_F(ProduceTest, PipelinedRequestsKeepTheirOrderWithoutWaitingForAcknowledgement) {
  create("orders", 2);
  for (const std::int32_t partition : {0, 1}) {
    const TopicPartition id{"orders", partition};
    ASSERT_TRUE(
        world_.run(node_.control(), [&] { return broker_->hold_high_watermark(id, true); }));
  }
  const auto pipeline = [this]() -> Task<> {
    std::vector<Pending<ProduceAnswer>> done;
    for (const auto* value : {"a", "b", "c"}) {
      auto call = broker_->produce(session(0), produce_request("orders", {0, 1}, value));
      MR_CO_CHECK(co_await call.dispatched);
      done.push_back(std::move(call.done));
    }
    for (const auto& one : done) EXPECT_FALSE(one.is_ready());
    for (const std::int32_t partition : {0, 1}) {
      const TopicPartition id{"orders", partition};
      auto release = [this, id] { return broker_->hold_high_watermark(id, false); };
      MR_CO_CHECK(co_await run_on(node_.control(), release));
    }
    std::int64_t expected = 0;
    for (auto& one : done) {
      MR_CO_TRY(const auto answer, co_await one);
      for (const auto& partition : answer.topics[0].partitions) {
        EXPECT_EQ(partition.base_offset, Offset{expected});
      }
      ++expected;
    }
    co_return {};
  };
  const auto ran = on_shard(0, pipeline);
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_EQ(all("orders", 0), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(all("orders", 1), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(ProduceTest, AcksAllIsAnsweredWhenTheHighWatermarkPasses) {
  create("orders", 1);
  const TopicPartition id{"orders", 0};
  ASSERT_TRUE(world_.run(node_.control(), [&] { return broker_->hold_high_watermark(id, true); }));
  std::optional<Result<ProduceAnswer>> answered;
  const auto wait = [this, &answered]() -> Task<> {
    auto call = broker_->produce(session(0), produce_request("orders", {0}, "x"));
    MR_CO_CHECK(co_await call.dispatched);
    answered.emplace(co_await call.done);
    co_return {};
  };
  node_.shards()[0]->post([&] { spawn(*node_.shards()[0], wait(), "wait"); });
  world_.run_for(seconds(5));
  EXPECT_FALSE(answered);
  // Without acks=all the answer does not wait.
  const auto leader_only = produce(0, produce_request("orders", {0}, "y", 1));
  ASSERT_TRUE(leader_only);
  EXPECT_EQ(leader_only->topics[0].partitions[0].base_offset, Offset{1});
  ASSERT_TRUE(world_.run(node_.control(), [&] { return broker_->hold_high_watermark(id, false); }));
  ASSERT_TRUE(world_.run_until([&] { return answered.has_value(); }, seconds(1)));
  ASSERT_TRUE(*answered);
  EXPECT_EQ((*answered)->topics[0].partitions[0].error, ErrorCode::none);
}

TEST_F(ProduceTest, AcksAllTimesOutButTheRecordsStay) {
  create("orders", 1);
  const TopicPartition id{"orders", 0};
  ASSERT_TRUE(world_.run(node_.control(), [&] { return broker_->hold_high_watermark(id, true); }));
  auto request = produce_request("orders", {0}, "late");
  request.timeout = milliseconds(200);
  const auto answer = produce(1, std::move(request));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->topics[0].partitions[0].error, ErrorCode::request_timed_out);
  ASSERT_TRUE(world_.run(node_.control(), [&] { return broker_->hold_high_watermark(id, false); }));
  EXPECT_EQ(all("orders", 0), (std::vector<std::string>{"late"}));
}

TEST_F(ProduceTest, ProducerIdsAreNotGivenTwice) {
  std::vector<std::int64_t> ids;
  const auto take = [&](std::size_t shard) {
    const auto answer =
        on_shard(shard, [&] { return broker_->init_producer_id(session(shard), {}); });
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->error, ErrorCode::none);
    EXPECT_EQ(answer->producer_epoch, 0);
    ids.push_back(answer->producer_id);
  };
  take(0);
  take(1);
  restart();
  take(0);
  std::ranges::sort(ids);
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
}

}  // namespace
}  // namespace millrace::kernel
