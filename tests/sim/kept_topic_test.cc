// A topic that a broker has in use itself is not deleted, whoever is the controller.
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
  std::optional<TopicDeleted> erase(std::size_t at) {
    auto& node = *nodes_[at];
    auto body = [&broker = brokers_[at]->broker()]() -> Task<std::vector<TopicDeleted>> {
      const auto session = broker.open_session(ClientInfo{});
      std::vector<TopicName> topics{{"orders", {}}};
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

}  // namespace
}  // namespace millrace::testing
