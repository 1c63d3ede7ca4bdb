// Aggregates beside partitions of users.
#include <gmock/gmock.h>

#include "aggregate_fixture.h"

namespace millrace::kernel {
namespace {

using std::chrono::seconds;

class PlacementTest : public AggregateTest {
 protected:
  PlacementTest() {
    close();
    declaration_ = {.name = "ledger",
                    .topic = "__beside",
                    .settings = {},
                    .placement = Placement::user_partition};
    factory_ = std::make_unique<LedgerFactory>(script_, declaration_);
    reopen();
  }
  /// The first command makes the log, and may find it being loaded.
  std::string put_at(const std::string& key, const std::string& text, std::size_t shard = 0) {
    const auto first = text_of(ask(key, put(text), shard));
    if (first != "COORDINATOR_LOAD_IN_PROGRESS") return first;
    settle();
    return text_of(ask(key, put(text), shard));
  }
  std::vector<std::string> logs() {
    std::vector<std::string> names;
    const auto known = on_shard(0, [this] { return broker_->metadata(session(0), {}); });
    EXPECT_TRUE(known);
    for (const auto& topic : known->topics) {
      if (topic.topic.name.starts_with("__beside.")) {
        EXPECT_TRUE(topic.internal);
        names.push_back(topic.topic.name + " " + std::to_string(topic.partitions.size()));
      }
    }
    return names;
  }
  std::string id_of(const std::string& topic) {
    MetadataRequest request;
    request.topics.emplace(1).front().name = topic;
    const auto known = on_shard(0, [&] { return broker_->metadata(session(0), request); });
    EXPECT_TRUE(known);
    return to_string(known->topics.at(0).topic.id);
  }
};

TEST_F(PlacementTest, HaveALogForEachTopicOfUsers) {
  create("orders", 2);
  EXPECT_EQ(put_at("orders-0", "zero"), "zero");
  EXPECT_EQ(put_at("orders-1", "one", 1), "one");
  EXPECT_EQ(text_of(query("orders-0", 1)), "zero");
  EXPECT_EQ(text_of(query("orders-1")), "one");
  EXPECT_THAT(logs(), ::testing::ElementsAre("__beside." + id_of("orders") + " 2"));
}

TEST_F(PlacementTest, KnowWhosePartitionTheyAreBeside) {
  create("orders", 2);
  put_at("orders-1", "x");
  EXPECT_EQ(text_of(ask("orders-1",
                        [](Ledger&, Command& command, Context& context) {
                          context.answer(command.reply_to,
                                         std::make_unique<Text>(to_string(context.partition())));
                        })),
            "orders-1");
}

TEST_F(PlacementTest, RefuseWhatIsNoPartition) {
  create("orders", 2);
  for (const auto* key : {"orders-2", "orders", "payments-0", "orders-", "orders-x", "orders--1"}) {
    EXPECT_EQ(text_of(ask(key, put("x"))), "UNKNOWN_TOPIC_OR_PARTITION") << key;
  }
  EXPECT_TRUE(logs().empty());
}

TEST_F(PlacementTest, GrowWithTheTopicTheyAreBeside) {
  create("orders", 1);
  put_at("orders-0", "zero");
  GrowTopicsRequest growth{.topics = {{.name = "orders", .partitions = 3}}, .timeout = seconds(30)};
  const auto grown = on_shard(0, [&] { return broker_->admin().grow_topics(session(0), growth); });
  ASSERT_TRUE(grown);
  ASSERT_EQ(grown->at(0).error, ErrorCode::none);
  EXPECT_EQ(put_at("orders-2", "two"), "two");
  EXPECT_EQ(text_of(query("orders-0")), "zero");
  EXPECT_THAT(logs(), ::testing::ElementsAre("__beside." + id_of("orders") + " 3"));
}

TEST_F(PlacementTest, GoWithTheTopicTheyAreBeside) {
  create("orders", 1);
  put_at("orders-0", "old");
  const auto parked = begin("orders-0", wait());
  settle();
  erase_topic("orders");
  ASSERT_TRUE(comes(parked));
  EXPECT_EQ(text_of(**parked), "NOT_COORDINATOR");
  EXPECT_TRUE(logs().empty());
  // One of the same name is another one.
  create("orders", 1);
  put_at("orders-0", "new");
  EXPECT_EQ(text_of(query("orders-0")), "new");
  EXPECT_EQ(script_.replayed, 0);
}

}  // namespace
}  // namespace millrace::kernel
