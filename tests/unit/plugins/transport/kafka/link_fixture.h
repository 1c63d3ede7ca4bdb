// Two brokers in simulation, of which one asks the other over a link: a served listener, with what
// its broker is asked, and a network between them.
#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>

#include "fakes.h"
#include "plugins/transport/kafka/server.h"

namespace millrace::kafka_transport::testing {

/// Takes every change and remembers what was asked.
class FakeCluster final : public ClusterService {
 public:
  Task<ClusterUpdated> update(ClusterUpdate update) override {
    updates.push_back(std::move(update));
    co_return ClusterUpdated{.error = ErrorCode::stale_broker_epoch, .failures = {}};
  }
  Task<std::vector<InSyncChanged>> change_in_sync(std::int32_t broker, std::int64_t broker_epoch,
                                                  std::vector<InSyncChange> asked) override {
    asker = {broker, broker_epoch};
    changes = asked;
    std::vector<InSyncChanged> answers;
    for (const auto& change : asked) {
      auto& answer = answers.emplace_back();
      answer.partition = change.partition;
      answer.state.leader = broker;
      answer.state.partition_epoch = change.partition_epoch + 1;
      answer.state.in_sync = change.in_sync;
    }
    co_return answers;
  }
  Task<LeadersMoved> shut_down(std::int32_t broker, std::int64_t broker_epoch) override {
    asker = {broker, broker_epoch};
    co_return LeadersMoved{.error = ErrorCode::none, .remaining = {{"orders", 3}}};
  }

  std::vector<ClusterUpdate> updates;
  std::vector<InSyncChange> changes;
  std::pair<std::int32_t, std::int64_t> asker;
};

/// `a_` asks `b_` over a Link, whose connections are of type Asked.
template <class Link, class Asked>
class LinkFixture : public ::testing::Test {
 protected:
  LinkFixture() {
    broker_.cluster = &cluster_;
    start();
    peer_ = connect();
  }
  ~LinkFixture() override {
    const auto left = on_a([this]() -> Task<> {
      peer_.reset();
      co_return {};
    });
    EXPECT_TRUE(left) << to_string(left.error());
    const auto stopped =
        world_.run(b_.control(), [this] { return server_->stop(Duration::zero()); });
    EXPECT_TRUE(stopped) << to_string(stopped.error());
    EXPECT_THAT(b_.reports(), ::testing::IsEmpty());
  }

  template <class F>
  auto on_a(F make) {
    return world_.run(*a_.shards().front(), std::move(make));
  }
  std::unique_ptr<Asked> connect() {
    auto connected = on_a([this] { return link_.connect({b_.host(), 9092}); });
    EXPECT_TRUE(connected) << to_string(connected.error());
    return connected ? *std::move(connected) : nullptr;
  }

  const Uuid id_{{7}};
  millrace::testing::SimWorld world_{1};
  millrace::testing::SimEnvironment& a_ = world_.add_node("a");
  millrace::testing::SimEnvironment& b_ = world_.add_node("b");
  millrace::testing::FakeHost host_{b_};
  FakeBroker broker_;
  FakeCluster cluster_;
  std::unique_ptr<Server> server_;
  Link link_{a_.network()};
  std::unique_ptr<Asked> peer_;

 private:
  void start() {
    Settings settings{.listen = {b_.host(), 9092},
                      .advertise = {b_.host(), 9092},
                      .frame_bytes_max = 1 << 20,
                      .connections_max = 100,
                      .requests_in_flight_max = 64,
                      .answer_bytes_pending_max = 1 << 20};
    server_ = std::make_unique<Server>(host_, settings);
    const auto listening = world_.run(b_.control(), [this] { return server_->listen(broker_); });
    ASSERT_TRUE(listening) << to_string(listening.error());
  }
};

}  // namespace millrace::kafka_transport::testing
