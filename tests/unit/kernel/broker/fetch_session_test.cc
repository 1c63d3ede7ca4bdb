// Fetch sessions (KIP-227) as clients see them.
#include <chrono>
#include <ctime>
#include <numeric>

#include "broker_fixture.h"

namespace millrace::kernel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Numbers = std::vector<std::int32_t>;

class FetchSessionTest : public BrokerTest {
 protected:
  /// Opens a session over partitions of "orders", each from its start.
  std::int32_t open(Numbers numbers) {
    const auto answer = fetch(0, next(0, 0, std::move(numbers)));
    EXPECT_TRUE(answer);
    EXPECT_EQ(answer->error, ErrorCode::none);
    EXPECT_GT(answer->session_id, 0);
    return answer->session_id;
  }
  /// A request of a session that adds partitions, each from its start.
  FetchRequest next(std::int32_t id, std::int32_t epoch, Numbers numbers = {}) {
    std::vector<PartitionFetch> partitions;
    for (const auto number : numbers) partitions.push_back({.partition = number, .from = {0}});
    auto request = fetch_request("orders", std::move(partitions));
    if (numbers.empty()) request.topics.clear();
    request.session_id = id;
    request.session_epoch = epoch;
    return request;
  }
  static Numbers numbers_of(const Result<FetchAnswer>& answer) {
    EXPECT_TRUE(answer);
    EXPECT_EQ(answer->error, ErrorCode::none);
    Numbers numbers;
    for (const auto& topic : answer->topics) {
      for (const auto& partition : topic.partitions) numbers.push_back(partition.partition);
    }
    return numbers;
  }
  Uuid id_of(const std::string& topic) {
    const MetadataRequest request{.topics = std::vector<TopicName>{{topic, {}}}};
    const auto answer = on_shard(0, [&] { return broker_->metadata(session(0), request); });
    EXPECT_TRUE(answer);
    return answer->topics.at(0).topic.id;
  }
  void remove(const std::string& topic) {
    const std::vector<TopicName> names{{topic, {}}};
    ASSERT_TRUE(
        on_shard(1, [&] { return broker_->admin().delete_topics(session(1), names, seconds(1)); }));
  }
};

TEST_F(FetchSessionTest, AnswersOnlyPartitionsWithNews) {
  create("orders", 5);
  const auto id = open({0, 1, 2, 3, 4});
  EXPECT_EQ(numbers_of(fetch(0, next(id, 1))), Numbers{});
  ASSERT_TRUE(produce(0, produce_request("orders", {3}, "news")));
  const auto answer = fetch(0, next(id, 2));
  EXPECT_EQ(numbers_of(answer), Numbers{3});
  EXPECT_EQ(answer->session_id, id);
  EXPECT_EQ(values_of(answer->topics[0].partitions[0]), std::vector<std::string>{"news"});
}

TEST_F(FetchSessionTest, RecordsAreAnsweredUntilTheOffsetMoves) {
  create("orders", 2);
  const auto id = open({0, 1});
  ASSERT_TRUE(produce(0, produce_request("orders", {0}, "kept")));
  EXPECT_EQ(numbers_of(fetch(0, next(id, 1))), Numbers{0});
  EXPECT_EQ(numbers_of(fetch(0, next(id, 2))), Numbers{0});
  auto moved = next(id, 3, {0});
  moved.topics[0].partitions[0].from = Offset{1};
  EXPECT_EQ(numbers_of(fetch(0, std::move(moved))), Numbers{});
  EXPECT_EQ(numbers_of(fetch(0, next(id, 4))), Numbers{});
}

TEST_F(FetchSessionTest, AMovedHighWatermarkIsNewsWithoutRecords) {
  create("orders", 1);
  auto first = next(0, 0, {0});
  const auto id = fetch(0, first)->session_id;
  ASSERT_TRUE(produce(0, produce_request("orders", {0}, "one")));
  auto beyond = next(id, 1, {0});
  beyond.topics[0].partitions[0].from = Offset{1};
  const auto answer = fetch(0, std::move(beyond));
  EXPECT_EQ(numbers_of(answer), Numbers{0});
  EXPECT_EQ(answer->topics[0].partitions[0].high_watermark, Offset{1});
}

TEST_F(FetchSessionTest, AMovedStartIsNewsWithoutRecords) {
  create("orders", 2);
  ASSERT_TRUE(produce(0, produce_request("orders", {0, 1}, "one")));
  auto first = next(0, 0, {0, 1});
  for (auto& partition : first.topics[0].partitions) partition.from = Offset{1};
  const auto id = fetch(0, first)->session_id;
  EXPECT_EQ(numbers_of(fetch(0, next(id, 1))), Numbers{});
  const TrimRequest trim{.topics = {{"orders", {{.partition = 1, .before = {1}}}}},
                         .timeout = seconds(1)};
  ASSERT_TRUE(on_shard(0, [&] { return broker_->admin().trim(session(0), trim); }));
  const auto answer = fetch(0, next(id, 2));
  EXPECT_EQ(numbers_of(answer), Numbers{1});
  EXPECT_EQ(answer->topics.at(0).partitions.at(0).log_start, Offset{1});
}

TEST_F(FetchSessionTest, ALongPollIsWokenByAnyPartitionOfTheSession) {
  create("orders", 100);
  Numbers all(100);
  for (std::int32_t number = 0; number < 100; ++number) {
    all[static_cast<std::size_t>(number)] = number;
  }
  const auto id = open(all);
  std::int32_t epoch = 0;
  for (const std::int32_t grows : {17, 42}) {
    auto request = next(id, ++epoch);
    request.wait_max = seconds(30);
    const auto answer = begin_fetch(0, std::move(request));
    world_.run_for(seconds(1));
    ASSERT_FALSE(*answer);
    ASSERT_TRUE(produce(1, produce_request("orders", {grows}, "news")));
    ASSERT_TRUE(world_.run_until([&] { return answer->has_value(); }, seconds(1)));
    EXPECT_EQ(numbers_of(**answer), Numbers{grows});
    auto moved = next(id, ++epoch, {grows});
    moved.topics[0].partitions[0].from = Offset{1};
    EXPECT_EQ(numbers_of(fetch(0, std::move(moved))), Numbers{});
  }
}

TEST_F(FetchSessionTest, ContinuesOverAnyConnectionOfTheBroker) {
  create("orders", 4);
  const auto id = open({0, 1, 2, 3});
  ASSERT_TRUE(produce(0, produce_request("orders", {2}, "news")));
  EXPECT_EQ(numbers_of(fetch(1, next(id, 1))), Numbers{2});
  EXPECT_EQ(numbers_of(fetch(0, next(id, 2))), Numbers{2});
}

// KAFKA-13079, KAFKA-17102.
TEST_F(FetchSessionTest, P07_ForgottenPartitionsAreNotServed) {
  create("orders", 3);
  ASSERT_TRUE(produce(0, produce_request("orders", {0, 1, 2}, "x")));
  const auto id = open({0, 1, 2});
  auto forgets = next(id, 1);
  forgets.forgotten.push_back({{"orders", {}}, {0, 2, 7}});
  EXPECT_EQ(numbers_of(fetch(0, std::move(forgets))), Numbers{1});
  EXPECT_EQ(numbers_of(fetch(0, next(id, 2))), Numbers{1});
  EXPECT_EQ(numbers_of(fetch(0, next(id, 3, {2}))), (Numbers{1, 2}));
  auto both = next(id, 4, {0});
  both.forgotten.push_back({{"orders", {}}, {1}});
  EXPECT_EQ(numbers_of(fetch(0, std::move(both))), (Numbers{0, 2}));
}

TEST_F(FetchSessionTest, ASessionWithoutPartitionsEnds) {
  create("orders", 1);
  const auto id = open({0});
  auto forgets = next(id, 1);
  forgets.forgotten.push_back({{"orders", {}}, {0}});
  const auto answer = fetch(0, std::move(forgets));
  EXPECT_EQ(answer->error, ErrorCode::none);
  EXPECT_EQ(answer->session_id, 0);
  EXPECT_EQ(fetch(0, next(id, 2))->error, ErrorCode::fetch_session_id_not_found);
}

TEST_F(FetchSessionTest, WrongIdsAndEpochsAreRefused) {
  create("orders", 1);
  const auto id = open({0});
  EXPECT_EQ(fetch(0, next(0, 5, {0}))->error, ErrorCode::fetch_session_id_not_found);
  EXPECT_EQ(fetch(0, next(id + 2, 1))->error, ErrorCode::fetch_session_id_not_found);
  EXPECT_EQ(fetch(0, next(id, 2))->error, ErrorCode::invalid_fetch_session_epoch);
  EXPECT_EQ(fetch(0, next(id, 1))->error, ErrorCode::none);
  EXPECT_EQ(fetch(0, next(id, 1))->error, ErrorCode::invalid_fetch_session_epoch);
  EXPECT_EQ(fetch(0, next(id, 2))->error, ErrorCode::none);
}

TEST_F(FetchSessionTest, P07_FromNamesToIdsWithinASessionIsRefused) {
  create("orders", 1);
  const auto id = open({0});
  auto by_id = next(id, 1, {0});
  by_id.by_topic_id = true;
  by_id.topics[0].topic = {"", id_of("orders")};
  EXPECT_EQ(fetch(0, by_id)->error, ErrorCode::fetch_session_topic_id_error);
  by_id.session_epoch = 0;
  const auto anew = fetch(0, by_id);
  EXPECT_EQ(anew->error, ErrorCode::none);
  EXPECT_NE(anew->session_id, id);
  EXPECT_EQ(fetch(0, next(id, 1))->error, ErrorCode::fetch_session_id_not_found);
}

TEST_F(FetchSessionTest, EpochMinusOneEndsASession) {
  create("orders", 1);
  const auto id = open({0});
  const auto last = fetch(0, next(id, -1, {0}));
  EXPECT_EQ(last->error, ErrorCode::none);
  EXPECT_EQ(last->session_id, 0);
  EXPECT_EQ(fetch(0, next(id, 1))->error, ErrorCode::fetch_session_id_not_found);
}

// librdkafka#4806: an id that is not known must not be an error for ever.
TEST_F(FetchSessionTest, P05_UnknownTopicIdsAreAnsweredByPartition) {
  create("orders", 1);
  create("deleted", 1);
  const std::vector<Uuid> ids{Uuid{}, node_.random().uuid(), id_of("deleted"), id_of("orders")};
  remove("deleted");
  FetchRequest request;
  request.by_topic_id = true;
  request.session_epoch = 0;
  for (const auto& id : ids) {
    request.topics.push_back({{"", id}, {{.partition = 0, .from = {0}, .bytes_max = 1000}}});
  }
  const auto answer = fetch(0, std::move(request));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error, ErrorCode::none);
  ASSERT_EQ(answer->topics.size(), 4u);
  for (std::size_t at = 0; at < 4; ++at) {
    EXPECT_EQ(answer->topics[at].topic.id, ids[at]);
    EXPECT_EQ(answer->topics[at].partitions[0].error,
              at < 3 ? ErrorCode::unknown_topic_id : ErrorCode::none);
  }
  EXPECT_EQ(fetch(0, next(answer->session_id, 1))->error, ErrorCode::fetch_session_topic_id_error);
}

TEST_F(FetchSessionTest, ADeletedTopicIsAnsweredWithAnErrorAndItsSuccessorByName) {
  create("orders", 1);
  const auto id = open({0});
  auto waiting = next(id, 1);
  waiting.wait_max = seconds(30);
  const auto answer = begin_fetch(0, std::move(waiting));
  world_.run_for(seconds(1));
  remove("orders");
  ASSERT_TRUE(world_.run_until([&] { return answer->has_value(); }, seconds(1)));
  EXPECT_NE((**answer)->topics.at(0).partitions.at(0).error, ErrorCode::none);
  const auto after = fetch(0, next(id, 2));
  EXPECT_EQ(after->topics.at(0).partitions.at(0).error, ErrorCode::unknown_topic_or_partition);
  create("orders", 1);
  ASSERT_TRUE(produce(0, produce_request("orders", {0}, "again")));
  const auto found = fetch(0, next(id, 3));
  EXPECT_EQ(values_of(found->topics.at(0).partitions.at(0)), std::vector<std::string>{"again"});
}

TEST_F(FetchSessionTest, WhoWasServedComesLast) {
  create("orders", 6);
  const auto id = open({0, 1, 2, 3, 4, 5});
  ASSERT_TRUE(produce(0, produce_request("orders", {0, 1, 2, 3, 4, 5}, std::string(1000, 'x'))));
  std::vector<int> served(6);
  for (std::int32_t epoch = 1; epoch <= 24; ++epoch) {
    auto request = next(id, epoch);
    request.bytes_max = 1500;
    const auto answer = fetch(0, std::move(request));
    for (const auto& partition : answer->topics.at(0).partitions) {
      if (!partition.records.empty()) ++served[static_cast<std::size_t>(partition.partition)];
    }
  }
  for (const auto times : served) EXPECT_EQ(times, 4);
}

TEST_F(FetchSessionTest, AnotherRequestOfTheSessionEndsTheOneThatWaits) {
  create("orders", 1);
  const auto id = open({0});
  auto waiting = next(id, 1);
  waiting.wait_max = seconds(30);
  const auto first = begin_fetch(0, std::move(waiting));
  world_.run_for(milliseconds(10));
  EXPECT_EQ(fetch(1, next(id, 2))->error, ErrorCode::none);
  ASSERT_TRUE(world_.run_until([&] { return first->has_value(); }, seconds(1)));
  EXPECT_EQ((**first)->error, ErrorCode::invalid_fetch_session_epoch);
}

TEST_F(FetchSessionTest, WithoutARoomForSessionsRequestsAreServedInFull) {
  defaults_["max.incremental.fetch.session.cache.slots"] = "0";
  restart();
  create("orders", 1);
  const auto answer = fetch(0, next(0, 0, {0}));
  EXPECT_EQ(answer->error, ErrorCode::none);
  EXPECT_EQ(answer->session_id, 0);
  EXPECT_EQ(numbers_of(answer), Numbers{0});
}

// A shard serves nobody else meanwhile, so no request may cost the square of its size. 60,000
// partitions took a minute of CPU time when it did, and take less than two seconds.
TEST_F(FetchSessionTest, TheCostOfARequestGrowsWithItsSizeAlone) {
  create("orders", 1);
  Numbers many(60'000);
  std::iota(many.begin(), many.end(), 0);
  const auto began = std::clock();
  const auto id = open(many);
  auto last = next(id, 1, many);
  last.forgotten.push_back({.topic = {"orders", {}}, .partitions = many});
  EXPECT_EQ(numbers_of(fetch(0, std::move(last))), Numbers{});

  auto unknown = next(0, 0, many);
  unknown.by_topic_id = true;
  unknown.topics[0].topic = {"", node_.random().uuid()};
  const auto answer = fetch(0, unknown);
  ASSERT_TRUE(answer);
  unknown.session_id = answer->session_id;
  unknown.session_epoch = 1;
  unknown.forgotten.push_back({.topic = unknown.topics[0].topic, .partitions = many});
  EXPECT_EQ(numbers_of(fetch(0, std::move(unknown))), Numbers{});
  EXPECT_LT(std::clock() - began, 20 * CLOCKS_PER_SEC);
}

TEST_F(FetchSessionTest, SessionsEndWithTheBroker) {
  create("orders", 2);
  const auto id = open({0, 1});
  restart();
  EXPECT_EQ(fetch(0, next(id, 1))->error, ErrorCode::fetch_session_id_not_found);
}

}  // namespace
}  // namespace millrace::kernel
