// Two brokers on one simulated coordination, and a client: who leads, and what becomes of it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/testing/sim_coordination.h>
#include <millrace/testing/sim_environment.h>

#include "sim_broker.h"
#include "sim_client.h"

namespace millrace::testing {

inline const TopicPartition orders{"orders", 0};

class TwoBrokers : public ::testing::Test {
 protected:
  explicit TwoBrokers(std::vector<std::string> settings) {
    for (const std::size_t at : {0, 1}) {
      auto sets = settings;
      sets.push_back("broker.id=" + std::to_string(at + 1));
      brokers_[at] = std::make_unique<SimBroker>(world_, *nodes_[at], sets);
      brokers_[at]->share(service_);
    }
  }
  ~TwoBrokers() override {
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
    const auto done = world_.run(*client_.shards()[0], body, std::chrono::minutes(1));
    ASSERT_TRUE(done) << to_string(done.error());
  }
  /// The leader, asked of a broker; 2: none.
  std::size_t leader(std::size_t asked) {
    auto body = [this, asked]() -> Task<std::string> {
      MR_CO_TRY(auto client, co_await connect_to(client_.network(), nodes_[asked]->host()));
      co_return co_await leader_host(*client, orders.topic);
    };
    const auto host = world_.run(*client_.shards()[0], body, std::chrono::minutes(1));
    if (!host) return 2;
    return *host == nodes_[0]->host() ? 0 : 1;
  }
  void create(std::int16_t replicas = 2) {
    auto body = [this, replicas]() -> Task<> {
      MR_CO_TRY(auto client, co_await connect_to(client_.network(), "b1"));
      co_return co_await create_topic(*client, orders.topic, 1, replicas);
    };
    const auto created = world_.run(*client_.shards()[0], body, std::chrono::minutes(1));
    ASSERT_TRUE(created) << to_string(created.error());
  }

  SimWorld world_{5};
  SimCoordination service_{world_};
  std::array<SimEnvironment*, 2> nodes_{&world_.add_node("b1"), &world_.add_node("b2")};
  std::array<std::unique_ptr<SimBroker>, 2> brokers_;
  SimEnvironment& client_ = world_.add_node("client");
};

}  // namespace millrace::testing
