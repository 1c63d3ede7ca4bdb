#include "broker_fixture.h"

namespace millrace::kernel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class FetchTest : public BrokerTest {};

TEST_F(FetchTest, WaitsForBytesAndIsWokenFromEitherShard) {
  create("orders", 2);
  for (const std::int32_t grows : {0, 1}) {
    const Offset from{0};
    auto request =
        fetch_request("orders", {{.partition = 0, .from = from}, {.partition = 1, .from = from}});
    request.wait_max = seconds(30);
    if (grows == 1) request.topics[0].partitions[0].from = Offset{1};
    const auto answer = begin_fetch(0, std::move(request));
    world_.run_for(seconds(2));
    EXPECT_FALSE(*answer);
    ASSERT_TRUE(produce(1, produce_request("orders", {grows}, "now")));
    ASSERT_TRUE(world_.run_until([&] { return answer->has_value(); }, seconds(1)));
    const auto& partitions = (**answer)->topics[0].partitions;
    EXPECT_EQ(values_of(partitions[static_cast<std::size_t>(grows)]),
              (std::vector<std::string>{"now"}));
  }
}

TEST_F(FetchTest, ALongPollOfAThousandPartitionsIsWokenByOne) {
  create("many", 1000);
  std::vector<PartitionFetch> partitions;
  for (std::int32_t number = 0; number < 1000; ++number) {
    partitions.push_back({.partition = number, .from = Offset{0}});
  }
  auto request = fetch_request("many", partitions);
  request.wait_max = seconds(30);
  const auto answer = begin_fetch(0, std::move(request));
  world_.run_for(seconds(2));
  EXPECT_FALSE(*answer);
  ASSERT_TRUE(produce(0, produce_request("many", {777}, "one")));
  ASSERT_TRUE(world_.run_until([&] { return answer->has_value(); }, seconds(1)));
  const auto& fetched = (**answer)->topics[0].partitions;
  ASSERT_EQ(fetched.size(), 1000u);
  EXPECT_EQ(values_of(fetched[777]), (std::vector<std::string>{"one"}));
  EXPECT_TRUE(fetched[776].records.empty());
}

TEST_F(FetchTest, AnswersEmptyAtTheDeadline) {
  create("orders", 1);
  auto request = fetch_request("orders", {{.partition = 0, .from = Offset{0}}});
  request.wait_max = milliseconds(500);
  const auto started = world_.now();
  const auto answer = fetch(1, std::move(request));
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->topics[0].partitions[0].records.empty());
  EXPECT_GE(world_.now() - started, milliseconds(500));
  EXPECT_LT(world_.now() - started, milliseconds(600));
}

TEST_F(FetchTest, WaitsForBytesMinNotJustForAny) {
  create("orders", 2);
  auto request = fetch_request(
      "orders", {{.partition = 0, .from = Offset{0}}, {.partition = 1, .from = Offset{0}}});
  request.wait_max = seconds(30);
  request.bytes_min = 1000;
  const auto answer = begin_fetch(0, std::move(request));
  ASSERT_TRUE(produce(0, produce_request("orders", {0}, std::string(400, 'a'))));
  world_.run_for(seconds(2));
  EXPECT_FALSE(*answer);
  ASSERT_TRUE(produce(0, produce_request("orders", {1}, std::string(700, 'b'))));
  ASSERT_TRUE(world_.run_until([&] { return answer->has_value(); }, seconds(1)));
  EXPECT_EQ(values_of((**answer)->topics[0].partitions[0]).size(), 1u);
  EXPECT_EQ(values_of((**answer)->topics[0].partitions[1]).size(), 1u);
}

TEST_F(FetchTest, ShowsNothingBeyondTheHighWatermark) {
  create("orders", 1);
  const TopicPartition id{"orders", 0};
  ASSERT_TRUE(produce(0, produce_request("orders", {0}, "seen")));
  ASSERT_TRUE(world_.run(node_.control(), [&] { return broker_->hold_high_watermark(id, true); }));
  ASSERT_TRUE(produce(0, produce_request("orders", {0}, "held", 1)));

  const auto first = fetch(0, fetch_request("orders", {{.partition = 0, .from = Offset{0}}}));
  ASSERT_TRUE(first);
  EXPECT_EQ(values_of(first->topics[0].partitions[0]), (std::vector<std::string>{"seen"}));
  EXPECT_EQ(first->topics[0].partitions[0].high_watermark, Offset{1});

  auto request = fetch_request("orders", {{.partition = 0, .from = Offset{1}}});
  request.wait_max = seconds(30);
  const auto answer = begin_fetch(0, std::move(request));
  world_.run_for(seconds(2));
  EXPECT_FALSE(*answer);
  ASSERT_TRUE(world_.run(node_.control(), [&] { return broker_->hold_high_watermark(id, false); }));
  ASSERT_TRUE(world_.run_until([&] { return answer->has_value(); }, seconds(1)));
  EXPECT_EQ(values_of((**answer)->topics[0].partitions[0]), (std::vector<std::string>{"held"}));
}

TEST_F(FetchTest, KeepsToTheRequestsLimitOverShardsButAnswersOneBatch) {
  create("orders", 4);
  ASSERT_TRUE(produce(0, produce_request("orders", {0, 1, 2, 3}, std::string(1000, 'x'))));
  const Offset from{0};
  auto request = fetch_request("orders", {{.partition = 0, .from = from},
                                          {.partition = 1, .from = from},
                                          {.partition = 2, .from = from},
                                          {.partition = 3, .from = from}});
  const auto filled = [](const Result<FetchAnswer>& answer) {
    std::vector<std::int32_t> numbers;
    for (const auto& partition : answer->topics[0].partitions) {
      if (!partition.records.empty()) numbers.push_back(partition.partition);
    }
    return numbers;
  };
  request.bytes_max = 1;
  EXPECT_EQ(filled(fetch(0, request)), (std::vector<std::int32_t>{0}));
  request.bytes_max = 2500;
  EXPECT_EQ(filled(fetch(0, request)), (std::vector<std::int32_t>{0, 1}));
  request.bytes_max = 1 << 20;
  EXPECT_EQ(filled(fetch(0, request)), (std::vector<std::int32_t>{0, 1, 2, 3}));
}

TEST_F(FetchTest, AnErrorIsAnsweredAtOnce) {
  create("orders", 1);
  auto request = fetch_request(
      "orders", {{.partition = 0, .from = Offset{99}}, {.partition = 5, .from = Offset{0}}});
  request.wait_max = seconds(30);
  const auto started = world_.now();
  const auto answer = fetch(0, std::move(request));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->topics[0].partitions[0].error, ErrorCode::offset_out_of_range);
  EXPECT_EQ(answer->topics[0].partitions[1].error, ErrorCode::unknown_topic_or_partition);
  EXPECT_LT(world_.now() - started, seconds(1));
}

TEST_F(FetchTest, APollWhoseTopicIsDeletedEnds) {
  create("orders", 1);
  auto request = fetch_request("orders", {{.partition = 0, .from = Offset{0}}});
  request.wait_max = seconds(30);
  const auto answer = begin_fetch(0, std::move(request));
  world_.run_for(seconds(1));
  const std::vector<TopicName> names{{"orders", {}}};
  ASSERT_TRUE(
      on_shard(1, [&] { return broker_->admin().delete_topics(session(1), names, seconds(1)); }));
  ASSERT_TRUE(world_.run_until([&] { return answer->has_value(); }, seconds(2)));
  EXPECT_NE((**answer)->topics[0].partitions[0].error, ErrorCode::none);
}

TEST_F(FetchTest, APollEndsBeforeTheBrokerIsClosed) {
  create("orders", 2);
  auto request = fetch_request(
      "orders", {{.partition = 0, .from = Offset{0}}, {.partition = 1, .from = Offset{0}}});
  request.wait_max = seconds(30);
  const auto answer = begin_fetch(0, std::move(request));
  world_.run_for(seconds(1));
  ASSERT_FALSE(*answer);
  restart();
  EXPECT_TRUE(answer->has_value());
}

}  // namespace
}  // namespace millrace::kernel
