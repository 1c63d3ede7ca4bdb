#include "plugins/transport/kafka/lost_brokers.h"

#include <chrono>
#include <deque>

#include <gtest/gtest.h>

#include <millrace/kafka/api_versions.h>
#include <millrace/kafka/metadata.h>

#include "fakes.h"

namespace millrace::kafka_transport::testing {
namespace {

using namespace std::chrono_literals;

const Address one{"one.example", 9092};
const Address other{"other.example", 9092};
const Address client{"192.0.2.7", 40001};

MetadataAnswer led_by(std::int32_t broker, std::int32_t epoch = 1) {
  MetadataAnswer answer;
  answer.brokers = {{1, one, ""}, {2, other, ""}};
  answer.topics.emplace_back().topic.name = "orders";
  answer.topics[0].partitions.push_back(
      {.partition = 0, .leader = broker, .leader_epoch = {epoch}, .replicas = {1, 2}});
  return answer;
}

TEST(LostBrokersTest, WhoCannotBeReachedLeadsAndIsLostUntilItIsReached) {
  LostBrokers lost;
  EXPECT_FALSE(lost.any());
  lost.note(one, false, MonoTime(1s));
  EXPECT_TRUE(lost.any());
  EXPECT_TRUE(lost.leads(led_by(1), MonoTime(2s)));
  EXPECT_FALSE(lost.leads(led_by(2), MonoTime(2s)));
  EXPECT_FALSE(lost.leads(led_by(-1), MonoTime(2s)));
  lost.note(one, true, MonoTime(3s));
  EXPECT_FALSE(lost.any());
  EXPECT_FALSE(lost.leads(led_by(1), MonoTime(3s)));
}

TEST(LostBrokersTest, WhomNobodyTriesToReachAnyMoreIsForgotten) {
  LostBrokers lost;
  lost.note(one, false, MonoTime(1s));
  EXPECT_FALSE(lost.leads(led_by(1), MonoTime(7s)));
  EXPECT_FALSE(lost.any());
}

TEST(LostBrokersTest, WhoLeadsOnWhileItIsCutOffFromUsIsNotWaitedFor) {
  LostBrokers lost;
  for (int second = 1; second < 25; ++second) {
    lost.note(one, false, MonoTime(std::chrono::seconds(second)));
  }
  EXPECT_TRUE(lost.leads(led_by(1), MonoTime(20s)));
  EXPECT_FALSE(lost.leads(led_by(1), MonoTime(24s)));
  EXPECT_TRUE(lost.any());
}

TEST(LostBrokersTest, AClientIsToldTheSameAgainWhenItComesBackSoon) {
  LostBrokers lost;
  lost.note(one, false, MonoTime(1s));
  EXPECT_FALSE(lost.told_before(client, led_by(1), MonoTime(1s)));
  EXPECT_TRUE(lost.told_before(client, led_by(1), MonoTime(2s)));
  EXPECT_FALSE(lost.told_before({"192.0.2.7", 40002}, led_by(1), MonoTime(2s)));
  EXPECT_FALSE(lost.told_before(client, led_by(1, 2), MonoTime(2s)));
  EXPECT_FALSE(lost.told_before(client, led_by(1, 2), MonoTime(5s)));
}

TEST(LostBrokersTest, WhoWasToldWhatIsForgottenWithWhoWasLost) {
  LostBrokers lost;
  lost.note(one, false, MonoTime(1s));
  EXPECT_FALSE(lost.told_before(client, led_by(1), MonoTime(1s)));
  lost.note(one, true, MonoTime(1s));
  lost.note(one, false, MonoTime(1s));
  EXPECT_FALSE(lost.told_before(client, led_by(1), MonoTime(1s)));
}

TEST(LostBrokersTest, ManyThatWaitLookLessOften) {
  LostBrokers lost;
  EXPECT_EQ(lost.pause(), 25ms);
  std::deque<LostBrokers::Waiting> waiting;
  while (waiting.size() < 160) waiting.emplace_back(lost);
  EXPECT_EQ(lost.pause(), 250ms);
  while (waiting.size() < 10'000) waiting.emplace_back(lost);
  EXPECT_EQ(lost.pause(), 1s);
  waiting.clear();
  EXPECT_EQ(lost.pause(), 25ms);
}

class LostLeaderTest : public ConnectionFixture {
 protected:
  LostLeaderTest() {
    connect();
    broker.metadata_answer = led_by(1);
    lost.note(one, false, shard.now());
  }
  std::string metadata(std::int32_t id) {
    kafka::MetadataRequest request;
    request.topics.emplace().emplace_back().name = "orders";
    return frame(12, id, request);
  }
  std::int32_t leader_told(std::size_t at, std::int32_t id) {
    const auto answers = wire.answers();
    const auto told = kafka::decode_response<kafka::MetadataResponse>(answers.at(at), 12, id);
    EXPECT_TRUE(told) << to_string(told.error());
    return told ? told->topics.at(0).partitions.at(0).leader_id : -2;
  }
};

TEST_F(LostLeaderTest, WhoAsksAgainIsAnsweredOnceThereIsAnother) {
  push(metadata(1));
  EXPECT_EQ(leader_told(0, 1), 1);
  push(metadata(2));
  shard.advance(2s);
  EXPECT_EQ(wire.answers().size(), 1);
  broker.metadata_answer = led_by(2);
  shard.advance(50ms);
  ASSERT_EQ(wire.answers().size(), 2);
  EXPECT_EQ(leader_told(1, 2), 2);
}

TEST_F(LostLeaderTest, TheNextRequestDoesNotWaitForThat) {
  push(metadata(1));
  push(metadata(2));
  EXPECT_EQ(wire.answers().size(), 1);
  push(frame(0, 3, kafka::ApiVersionsRequest{}));
  EXPECT_EQ(answered(), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(leader_told(1, 2), 1);
}

TEST_F(LostLeaderTest, AConnectionThatStopsAnswersWhatWaits) {
  push(metadata(1));
  push(metadata(2));
  connection->stop();
  shard.run();
  EXPECT_EQ(answered(), (std::vector<std::int32_t>{1, 2}));
}

TEST_F(LostLeaderTest, NobodyWaitsForLong) {
  push(metadata(1));
  push(metadata(2));
  for (int second = 0; second < 9; ++second) {
    lost.note(one, false, shard.now());
    shard.advance(1s);
  }
  EXPECT_EQ(answered(), (std::vector<std::int32_t>{1, 2}));
}

}  // namespace
}  // namespace millrace::kafka_transport::testing
