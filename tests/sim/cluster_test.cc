// Three brokers on one simulated coordination: what was acknowledged with acks=all is there after
// the death of a leader, of the controller, of whoever leads when the seed says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/testing/sim_coordination.h>
#include <millrace/testing/sim_environment.h>

#include "sim_broker.h"
#include "sim_client.h"

namespace millrace::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const TopicPartition orders{"orders", 0};

enum class Death { kill, power, cut_off };

class Cluster {
 public:
  explicit Cluster(std::uint64_t seed) : world_(seed) {
    for (int id = 1; id <= 3; ++id) {
      auto& node = world_.add_node("b" + std::to_string(id));
      auto broker = std::make_unique<SimBroker>(
          world_, node, std::vector<std::string>{"broker.id=" + std::to_string(id)});
      broker->share(service_);
      nodes_.push_back(&node);
      brokers_.push_back(std::move(broker));
    }
  }
  ~Cluster() {
    for (auto& broker : brokers_) static_cast<void>(broker->stop());
  }

  template <class F>
  auto on_client(F make) {
    return world_.run(*client_.shards()[0], std::move(make), minutes(5));
  }

  void run(Death death) {
    for (auto& broker : brokers_) {
      const auto started = broker->start();
      ASSERT_TRUE(started) << to_string(started.error());
    }
    const auto created = on_client([this] { return create(); });
    ASSERT_TRUE(created) << to_string(created.error());

    client_.shards()[0]->post([this] { spawn(*client_.shards()[0], produce_all(), "producer"); });
    const auto before = world_.random().below(40) + 5;
    ASSERT_TRUE(world_.run_until([&] { return acknowledged_.size() >= before; }, minutes(1)));
    const auto victim = leader();
    ASSERT_LT(victim, brokers_.size());
    switch (death) {
      case Death::kill: brokers_[victim]->kill(); break;
      case Death::power: brokers_[victim]->crash(); break;
      case Death::cut_off: cut_off(victim); break;
    }
    const auto then = acknowledged_.size();
    ASSERT_TRUE(world_.run_until([&] { return acknowledged_.size() >= then + 40; }, minutes(2)))
        << then << " before, " << acknowledged_.size() << " in the end";
    if (death == Death::cut_off) {
      service_.reach(*nodes_[victim]);
      world_.heal();
    } else {
      const auto back = brokers_[victim]->start();
      ASSERT_TRUE(back) << to_string(back.error());
    }
    enough_ = true;
    ASSERT_TRUE(world_.run_until([this] { return ended_; }, minutes(2)));
    world_.run_for(seconds(10));
    const auto kept = on_client([this] { return read_all(); });
    ASSERT_TRUE(kept) << to_string(kept.error());
    const std::multiset<std::string> values(kept->begin(), kept->end());
    for (const auto& value : acknowledged_) {
      EXPECT_TRUE(values.contains(value)) << value << " is lost";
    }
  }

 private:
  // From coordination, from the brokers and from clients; it lives on.
  void cut_off(std::size_t victim) {
    service_.cut_off(*nodes_[victim]);
    for (std::size_t other = 0; other < nodes_.size(); ++other) {
      if (other != victim) world_.block(*nodes_[victim], *nodes_[other]);
    }
    world_.block(*nodes_[victim], client_);
  }
  std::size_t leader() {
    const auto host = on_client([this] { return find_leader(); });
    for (std::size_t at = 0; host && at < nodes_.size(); ++at) {
      if (nodes_[at]->host() == *host) return at;
    }
    return nodes_.size();
  }

  Task<> create() {
    MR_CO_TRY(auto client, co_await connect_to(client_.network(), "b1"));
    co_return co_await create_topic(*client, orders.topic, 1, 3);
  }
  Task<std::string> find_leader() {
    for (const auto* node : nodes_) {
      auto asking = with_deadline(ask_leader(node->host()), seconds(2));
      auto host = co_await std::move(asking);
      if (host) co_return std::move(host);
    }
    co_return Error{Errc::not_found, "nobody knows a leader"};
  }
  Task<std::string> ask_leader(std::string host) {
    MR_CO_TRY(auto client, co_await connect_to(client_.network(), std::move(host)));
    co_return co_await leader_host(*client, orders.topic);
  }
  Task<std::int64_t> try_produce(std::string value) {
    MR_CO_TRY(auto host, co_await find_leader());
    MR_CO_TRY(auto client, co_await connect_to(client_.network(), std::move(host)));
    co_return co_await produce(*client, orders, std::move(value));
  }
  // One record after the other, each until it is acknowledged.
  Task<> produce_all() {
    for (int n = 0; !enough_; ++n) {
      const auto value = "record " + std::to_string(n);
      while (true) {
        auto producing = with_deadline(try_produce(value), seconds(5));
        if (co_await std::move(producing)) break;
        MR_CO_CHECK(co_await sleep(milliseconds(100)));
      }
      acknowledged_.push_back(value);
      MR_CO_CHECK(co_await sleep(milliseconds(20)));
    }
    ended_ = true;
    co_return {};
  }
  Task<std::vector<std::string>> read_all() {
    MR_CO_TRY(auto host, co_await find_leader());
    MR_CO_TRY(auto client, co_await connect_to(client_.network(), std::move(host)));
    co_return co_await consume(*client, orders);
  }

  SimWorld world_;
  SimCoordination service_{world_};
  std::vector<SimEnvironment*> nodes_;
  std::vector<std::unique_ptr<SimBroker>> brokers_;
  SimEnvironment& client_ = world_.add_node("client");
  std::vector<std::string> acknowledged_;
  bool enough_ = false;
  bool ended_ = false;
};

class SimClusterTest : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(SimClusterTest, NothingIsLostWhenALeaderIsKilled) {
  Cluster cluster(GetParam());
  cluster.run(Death::kill);
}

TEST_P(SimClusterTest, NothingIsLostWhenALeaderLosesItsPower) {
  Cluster cluster(GetParam() + 1000);
  cluster.run(Death::power);
}

TEST_P(SimClusterTest, NothingIsLostWhenALeaderIsCutOff) {
  Cluster cluster(GetParam() + 2000);
  cluster.run(Death::cut_off);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimClusterTest, ::testing::Range<std::uint64_t>(1, 6));

}  // namespace
}  // namespace millrace::testing
