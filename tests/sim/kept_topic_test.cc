// A topic that a broker has in use itself is not deleted, whoever is the controller; one that all
// declare, and that is deleted, stays so.
#include <optional>

#include <millrace/admin.h>

#include "kernel/broker/broker.h"
#include "two_brokers.h"

namespace millrace::testing {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class SimKeptTopicTest : public TwoBrokers {
 protected:
  SimKeptTopicTest() : TwoBrokers({}) {
    for (const std::size_t at : {0, 1}) start(at);
    create();
  }
  template <class F>
  void on(std::size_t at, F make) {
    const auto done = world_.run(nodes_[at]->control(), make, minutes(1));
    ASSERT_TRUE(done) << to_string(done.error());
  }
  void keep(std::size_t at) {
    on(at,
       [&broker = brokers_[at]->broker()] { return broker.keep_topic("orders", "it is in use"); });
  }
  /// What a broker answers to who deletes the topic; none where the request did not come to its
  /// end.
  std::optional<TopicDeleted> erase(std::size_t at, std::string topic = "orders") {
    auto& node = *nodes_[at];
    auto body = [&broker = brokers_[at]->broker(),
                 topic = std::move(topic)]() -> Task<std::vector<TopicDeleted>> {
      const auto session = broker.open_session(ClientInfo{});
      std::vector<TopicName> topics{{topic, {}}};
      co_return co_await broker.admin().delete_topics(*session, std::move(topics), seconds(30));
    };
    const auto deleted = world_.run(*node.shards()[0], body, minutes(1));
    if (!deleted || deleted->size() != 1) return std::nullopt;
    return deleted->front();
  }
};

TEST_F(SimKeptTopicTest, ByTheOtherBrokerItIsRefusedUntilItIsReleased) {
  keep(1);
  const auto refused = erase(0);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->error, ErrorCode::topic_deletion_disabled);
  EXPECT_EQ(refused->message, "it is in use");
  on(1, [&broker = brokers_[1]->broker()] { return broker.release_topic("orders"); });
  const auto deleted = erase(0);
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->error, ErrorCode::none) << deleted->message;
}

TEST_F(SimKeptTopicTest, ItIsKeptInTheNextSessionToo) {
  keep(1);
  service_.cut_off(*nodes_[1]);
  world_.run_for(seconds(30));
  service_.reach(*nodes_[1]);
  ASSERT_TRUE(world_.run_until(
      [this] { return brokers_[1]->log().contains("back in the cluster"); }, minutes(1)));
  const auto refused = erase(0);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->error, ErrorCode::topic_deletion_disabled);
}

TEST_F(SimKeptTopicTest, WhoIsGoneKeepsNothing) {
  keep(1);
  brokers_[1]->kill();
  world_.run_for(seconds(30));
  const auto deleted = erase(0);
  ASSERT_TRUE(deleted);
  EXPECT_NE(deleted->error, ErrorCode::topic_deletion_disabled);
}

class SimDeclaredTopicTest : public SimKeptTopicTest {
 protected:
  static std::vector<NewTopic> declared() {
    NewTopic topic;
    topic.name = "declared";
    topic.partitions = 1;
    topic.replication_factor = 2;
    return {topic};
  }
};

TEST_F(SimDeclaredTopicTest, OneThatIsDeletedAtOnceIsNotMadeAgainByWhoWasSlower) {
  auto& control = nodes_[0]->control();
  auto& controller = brokers_[0]->broker();
  control.post([&] {
    auto making = [](kernel::KernelBroker& broker, std::vector<NewTopic> topics) -> Task<> {
      MR_CO_CHECK(co_await broker.make_declared(std::move(topics)));
      co_return {};
    };
    spawn(control, making(controller, declared()), "declares");
  });
  auto& other = brokers_[1]->broker();
  const auto slower =
      world_.run(nodes_[1]->control(), [&] { return other.make_declared(declared()); }, minutes(1));
  ASSERT_TRUE(slower) << to_string(slower.error());
  EXPECT_EQ(slower->at(0).state, kernel::DeclaredTopic::State::as_declared) << slower->at(0).detail;

  const auto deleted = erase(0, "declared");
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->error, ErrorCode::none) << deleted->message;
  world_.run_for(seconds(5));
  const auto again = erase(0, "declared");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->error, ErrorCode::unknown_topic_or_partition) << "nobody has made it again";
}

}  // namespace
}  // namespace millrace::testing
