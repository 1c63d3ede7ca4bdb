// A replica that was not in sync is elected where the topic allows it: what that costs is told by
// offset range, by the broker that leads and by the one whose records go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/testing/sim_coordination.h>
#include <millrace/testing/sim_environment.h>

#include "sim_broker.h"
#include "sim_client.h"

namespace millrace::testing {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

const TopicPartition orders{"orders", 0};

class SimUncleanTest : public ::testing::Test {
 protected:
  SimUncleanTest() {
    for (const std::size_t at : {0, 1}) {
      const std::vector<std::string> sets{
          "broker.id=" + std::to_string(at + 1),
          R"(defaults."unclean.leader.election.enable"=true)",
          R"(defaults."replica.high.watermark.checkpoint.interval.ms"=500)"};
      brokers_[at] = std::make_unique<SimBroker>(world_, *nodes_[at], sets);
      brokers_[at]->share(service_);
    }
  }
  ~SimUncleanTest() override {
    for (auto& broker : brokers_) static_cast<void>(broker->stop());
  }

  void start(std::size_t at) {
    const auto started = brokers_[at]->start();
    ASSERT_TRUE(started) << to_string(started.error());
  }
  /// Produces so many records to a broker.
  void produce(std::size_t at, int records) {
    auto body = [this, at, records]() -> Task<> {
      MR_CO_TRY(auto client, co_await connect_to(client_.network(), nodes_[at]->host()));
      for (int n = 0; n < records; ++n) {
        MR_CO_CHECK(co_await testing::produce(*client, orders, "record"));
      }
      co_return {};
    };
    const auto done = world_.run(*client_.shards()[0], body, minutes(1));
    ASSERT_TRUE(done) << to_string(done.error());
  }
  /// The leader, asked of a broker; 2: none.
  std::size_t leader(std::size_t asked) {
    auto body = [this, asked]() -> Task<std::string> {
      MR_CO_TRY(auto client, co_await connect_to(client_.network(), nodes_[asked]->host()));
      co_return co_await leader_host(*client, orders.topic);
    };
    const auto host = world_.run(*client_.shards()[0], body, minutes(1));
    if (!host) return 2;
    return *host == nodes_[0]->host() ? 0 : 1;
  }
  void create() {
    auto body = [this]() -> Task<> {
      MR_CO_TRY(auto client, co_await connect_to(client_.network(), "b1"));
      co_return co_await create_topic(*client, orders.topic, 1, 2);
    };
    const auto created = world_.run(*client_.shards()[0], body, minutes(1));
    ASSERT_TRUE(created) << to_string(created.error());
  }

  SimWorld world_{5};
  SimCoordination service_{world_};
  std::array<SimEnvironment*, 2> nodes_{&world_.add_node("b1"), &world_.add_node("b2")};
  std::array<std::unique_ptr<SimBroker>, 2> brokers_;
  SimEnvironment& client_ = world_.add_node("client");
};

TEST_F(SimUncleanTest, WhatItCostsIsToldByOffsets) {
  for (const std::size_t at : {0, 1}) start(at);
  create();
  const auto first = leader(0);
  ASSERT_LT(first, 2U);
  const auto other = 1 - first;
  produce(first, 10);
  world_.run_for(seconds(1));
  brokers_[other]->kill();
  produce(first, 7);  // acknowledged once the other one is out of sync
  world_.run_for(seconds(2));
  brokers_[first]->kill();
  start(other);
  ASSERT_TRUE(world_.run_until([&] { return leader(other) == other; }, minutes(1)));
  EXPECT_THAT(brokers_[other]->log().lines(),
              Contains(AllOf(HasSubstr("elected as leader without being in sync"),
                             HasSubstr("orders-0"), HasSubstr("from=10"))));
  produce(other, 1);
  start(first);
  EXPECT_TRUE(world_.run_until(
      [&] {
        const auto& lines = brokers_[first]->log().lines();
        return std::ranges::any_of(lines, [](const std::string& line) {
          return line.contains("replicated records are lost") && line.contains("orders-0") &&
                 line.contains("from=10") && line.contains("to=16") && line.contains("records=7");
        });
      },
      minutes(1)));
}

}  // namespace
}  // namespace millrace::testing
