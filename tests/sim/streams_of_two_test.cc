// A stream on two brokers, of which one is the controller.
#include <millrace/streams.h>

#include "kernel/broker/broker.h"
#include "two_brokers.h"

namespace millrace::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr const char* changelog = "__stream_stamp_changelog";

class SimStreamsOfTwoTest : public TwoBrokers {
 protected:
  SimStreamsOfTwoTest() : TwoBrokers({"plugins.path=[\"" MILLRACE_STREAMS_DIR "\"]"}) {
    for (const std::size_t at : {0, 1}) start(at);
    create();
  }

  /// As a transport of a broker asks.
  template <class F>
  auto at(std::size_t broker, const F& ask) {
    auto body = [&asked = static_cast<Broker&>(brokers_[broker]->broker()), ask] {
      return ask(asked);
    };
    return world_.run(*nodes_[broker]->shards()[0], std::move(body), minutes(1));
  }
  MetadataAnswer metadata(std::size_t broker) {
    const auto answer = at(broker, [](Broker& asked) -> Task<MetadataAnswer> {
      const auto session = asked.open_session(ClientInfo{});
      co_return co_await asked.metadata(*session, MetadataRequest{});
    });
    EXPECT_TRUE(answer) << to_string(answer.error());
    return answer.value_or(MetadataAnswer{});
  }
  bool knows(std::size_t broker, std::string_view topic) {
    const auto topics = metadata(broker).topics;
    return std::ranges::any_of(topics, [&](const auto& one) { return one.topic.name == topic; });
  }
  std::string state(std::size_t broker) {
    const auto facts = at(broker, [](Broker& asked) { return asked.service<Streams>()->list(); });
    return facts && facts->size() == 1 ? facts->front().state : "";
  }
  bool is_everywhere(std::string_view wanted) {
    for (int look = 0; look < 600; ++look) {
      if (state(0) == wanted && state(1) == wanted) return true;
      world_.run_for(milliseconds(100));
    }
    return false;
  }
  void declare(std::size_t broker) {
    StreamSpec spec{.name = "stamp", .sources = {orders.topic}};
    spec.steps.push_back({.name = "stamp", .plugin = "stamp_one"});
    spec.sink = "out";
    const auto created =
        at(broker, [spec](Broker& asked) { return asked.service<Streams>()->create(spec); });
    ASSERT_TRUE(created) << to_string(created.error());
  }
};

TEST_F(SimStreamsOfTwoTest, IsRemovedWithItsStateWhicheverBrokerIsAsked) {
  for (const std::size_t asked : {0, 1}) {
    declare(asked);
    ASSERT_TRUE(is_everywhere("running"));
    ASSERT_TRUE(knows(asked, changelog));
    const auto removed =
        at(asked, [](Broker& broker) { return broker.service<Streams>()->remove("stamp"); });
    ASSERT_TRUE(removed) << "the controller is " << metadata(asked).controller_id << ": "
                         << to_string(removed.error());
    EXPECT_FALSE(knows(asked, changelog));
    EXPECT_TRUE(is_everywhere(""));
  }
}

}  // namespace
}  // namespace millrace::testing
