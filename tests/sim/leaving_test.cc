// A broker that stops lets others lead first, unless it is told not to, and asks again where that
// fails.
#include <algorithm>

#include <millrace/kafka/metadata.h>

#include "kernel/broker/broker.h"
#include "two_brokers.h"

namespace millrace::testing {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// The first broker is the controller; which of them leads is the topic's choice.
class SimLeavingTest : public TwoBrokers {
 protected:
  explicit SimLeavingTest(std::vector<std::string> settings = {})
      : TwoBrokers(std::move(settings)) {
    for (const std::size_t at : {0, 1}) start(at);
    create();
    leader_ = leader(0);
    EXPECT_LT(leader_, 2U);
    produce(leader_, 3);
  }
  SimBroker& controller() { return *brokers_[0]; }
  /// Whether the topic's metadata names that broker.
  bool names(std::size_t asked, std::int32_t id) {
    auto body = [this, asked, id]() -> Task<bool> {
      MR_CO_TRY(auto client, co_await connect_to(client_.network(), nodes_[asked]->host()));
      kafka::MetadataRequest request;
      request.topics.emplace().emplace_back().name = orders.topic;
      MR_CO_TRY(const auto answer, co_await client->call(std::move(request)));
      co_return std::ranges::find(answer.brokers, id, &kafka::MetadataResponse::Broker::node_id) !=
          answer.brokers.end();
    };
    const auto named = world_.run(*client_.shards()[0], body, minutes(1));
    EXPECT_TRUE(named) << to_string(named.error());
    return named && *named;
  }

  std::size_t leader_ = 2;
};

TEST_F(SimLeavingTest, OthersLeadBeforeItIsGone) {
  const auto other = 1 - leader_;
  const auto from = world_.now();
  ASSERT_TRUE(brokers_[leader_]->stop());
  EXPECT_LT(world_.now() - from, seconds(1));
  EXPECT_EQ(leader(other), other);
  produce(other, 1);
  EXPECT_TRUE(controller().log().contains("a broker leaves"));
}

// Nothing is tried first over a connection to the process before.
TEST_F(SimLeavingTest, WhoIsBackIsInSyncWithoutAPause) {
  ASSERT_TRUE(brokers_[1]->stop());
  const auto from = world_.now();
  start(1);
  const auto in_sync = [this] {
    const auto& known = brokers_[0]->broker().partitions().shards()[0]->cluster();
    return known->find(std::string_view(orders.topic))->partitions[0].in_sync.size() == 2;
  };
  EXPECT_TRUE(world_.run_until(in_sync, seconds(10)));
  EXPECT_LT(world_.now() - from, std::chrono::milliseconds(100));
}

// librdkafka would let go of the partition with it, had it not heard of the new leader before.
TEST_F(SimLeavingTest, ItStaysNamedForAMoment) {
  const auto other = 1 - leader_;
  const auto id = static_cast<std::int32_t>(leader_) + 1;
  ASSERT_TRUE(brokers_[leader_]->stop());
  EXPECT_TRUE(names(other, id));
  world_.run_for(seconds(4));
  EXPECT_FALSE(names(other, id));
}

class SimLeavingAtOnceTest : public SimLeavingTest {
 protected:
  SimLeavingAtOnceTest() : SimLeavingTest({R"(defaults."controlled.shutdown.enable"=false)"}) {}
};

TEST_F(SimLeavingAtOnceTest, NobodyIsAsked) {
  ASSERT_TRUE(brokers_[leader_]->stop());
  EXPECT_FALSE(controller().log().contains("a broker leaves"));
}

class SimLeavingInTriesTest : public SimLeavingTest {
 protected:
  SimLeavingInTriesTest()
      : SimLeavingTest({R"(defaults."controlled.shutdown.max.retries"=4)",
                        R"(defaults."controlled.shutdown.retry.backoff.ms"=2000)"}) {}
};

// The controller has just died, and is the only one who could lead.
TEST_F(SimLeavingInTriesTest, ItIsTriedAgainForAsLongAsIsSet) {
  nodes_[0]->kill();
  const auto from = world_.now();
  ASSERT_TRUE(brokers_[1]->stop());
  EXPECT_TRUE(brokers_[1]->log().contains("could not let others lead; it is tried again"));
  EXPECT_GE(world_.now() - from, seconds(5));
  EXPECT_LE(world_.now() - from, seconds(9));
}

TEST_F(SimLeavingInTriesTest, WhatItDoesIsSaid) {
  auto& broker = *brokers_[1];
  EXPECT_EQ(broker.doing(), "serving 1 partitions");
  nodes_[0]->kill();
  std::string doing;
  const auto look = [&broker, &doing]() -> Task<> {
    MR_CO_CHECK(co_await sleep(seconds(1)));
    doing = broker.doing();
    co_return {};
  };
  auto& control = nodes_[1]->control();
  control.post([&control, &look] { spawn(control, look(), "look"); });
  ASSERT_TRUE(broker.stop());
  EXPECT_EQ(doing, "handing over leaders");
}

}  // namespace
}  // namespace millrace::testing
