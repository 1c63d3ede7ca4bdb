// Topics that the configuration declares.
#include <algorithm>

#include "broker_fixture.h"

namespace millrace::kernel {
namespace {

using std::chrono::seconds;

class DeclaredTopicsTest : public BrokerTest {
 protected:
  static NewTopic declared(std::string name, std::int32_t partitions,
                           std::int16_t replication_factor = -1) {
    NewTopic topic;
    topic.name = std::move(name);
    topic.partitions = partitions;
    topic.replication_factor = replication_factor;
    return topic;
  }
  using State = DeclaredTopic::State;

  std::vector<DeclaredTopic> make(std::vector<NewTopic> topics) {
    auto made =
        world_.run(node_.control(), [&] { return broker_->make_declared(std::move(topics)); });
    EXPECT_TRUE(made) << to_string(made.error());
    return made ? *std::move(made) : std::vector<DeclaredTopic>();
  }
  TopicInfo topic(const std::string& name) {
    const MetadataRequest request{.topics = std::vector<TopicName>{{name, {}}},
                                  .auto_create = false};
    auto answer = on_shard(0, [&] { return broker_->metadata(session(0), request); });
    EXPECT_TRUE(answer) << to_string(answer.error());
    return answer->topics.at(0);
  }
  std::string setting(const std::string& name, const std::string& key) {
    std::vector<ConfigQuery> queries(1);
    queries[0].resource = {ConfigResourceType::topic, name};
    auto described =
        on_shard(0, [&] { return broker_->configs().describe(session(0), std::move(queries)); });
    EXPECT_TRUE(described) << to_string(described.error());
    for (const auto& entry : described->at(0).entries) {
      if (entry.name == key) return entry.value.value_or("none");
    }
    return "absent";
  }
  std::ptrdiff_t lines_with(const std::string& text) const {
    return std::ranges::count_if(
        log_.lines(), [&](const std::string& line) { return line.find(text) != line.npos; });
  }
};

TEST_F(DeclaredTopicsTest, AreMadeWithTheirSettings) {
  auto orders = declared("orders", 3);
  orders.configs.emplace_back("retention.ms", "60000");
  make({orders, declared("plain", -1)});
  EXPECT_EQ(topic("orders").partitions.size(), 3u);
  EXPECT_EQ(setting("orders", "retention.ms"), "60000");
  EXPECT_EQ(topic("plain").partitions.size(), 1u) << "as num.partitions says";
}

TEST_F(DeclaredTopicsTest, OneThatIsThereStaysAsItIsAndDifferencesAreTold) {
  create("orders", 2);
  const auto id = topic("orders").topic.id;
  auto orders = declared("orders", 3, 2);
  orders.configs.emplace_back("retention.ms", "60000");
  make({orders});
  EXPECT_EQ(topic("orders").topic.id, id);
  EXPECT_EQ(topic("orders").partitions.size(), 2u);
  EXPECT_EQ(setting("orders", "retention.ms"), "604800000");
  EXPECT_EQ(lines_with("partitions is 2, declared 3; replication-factor is 1, declared 2; "
                       "retention.ms is 604800000, declared 60000"),
            1);
}

TEST_F(DeclaredTopicsTest, OneThatIsAsDeclaredIsNotTold) {
  defaults_["log.retention.minutes"] = "1";
  restart();
  auto orders = declared("orders", 2, 1);
  orders.configs.emplace_back("retention.ms", "60000");
  create("orders", 2);  // which inherits what is declared
  make({orders});
  EXPECT_EQ(lines_with("differs from its declaration"), 0);
}

TEST_F(DeclaredTopicsTest, ThatNeedMoreBrokersWaitAndKeepNobodyWaiting) {
  make({declared("wide", 1, 2), declared("narrow", 1, 1)});
  EXPECT_EQ(topic("narrow").error, ErrorCode::none);
  EXPECT_EQ(topic("wide").error, ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(lines_with("once there are brokers for its replicas"), 1);
  world_.run_for(seconds(1500));
  EXPECT_EQ(lines_with("once there are brokers for its replicas"), 1) << "told once";

  // Somebody makes it by hand meanwhile: it is compared with.
  create("wide", 1);
  world_.run_for(seconds(2));
  EXPECT_EQ(lines_with("replication-factor is 1, declared 2"), 1);
}

TEST_F(DeclaredTopicsTest, ThatCannotBeMadeAreToldAndTheOthersAre) {
  create("a.b", 1);
  make({declared("a_b", 1), declared("orders", 1)});
  EXPECT_EQ(topic("a_b").error, ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(topic("orders").error, ErrorCode::none);
  EXPECT_EQ(lines_with("collides with existing topic 'a.b'"), 1);
}

TEST_F(DeclaredTopicsTest, ThoseThatAReloadDeclaresAreMadeAndWhatBecameOfEachIsAnswered) {
  ASSERT_EQ(make({declared("orders", 2)}).at(0).state, State::made);
  create("a.b", 1);
  const auto again = make(
      {declared("orders", 2), declared("more", 3), declared("a_b", 1), declared("wide", 1, 2)});
  ASSERT_EQ(again.size(), 4u);
  EXPECT_EQ(again[0].state, State::as_declared);
  EXPECT_EQ(again[1].state, State::made);
  EXPECT_EQ(topic("more").partitions.size(), 3u);
  EXPECT_EQ(again[2].state, State::refused);
  EXPECT_NE(again[2].detail.find("collides with existing topic 'a.b'"), std::string::npos);
  EXPECT_EQ(again[3].state, State::waits);
  EXPECT_EQ(again[3].detail, "it needs 2 brokers for its replicas, there are 1");
  EXPECT_EQ(lines_with("differs from its declaration"), 0);
}

TEST_F(DeclaredTopicsTest, ADeclarationThatChangesIsComparedWithTheTopic) {
  make({declared("orders", 2)});
  const auto again = make({declared("orders", 5)});
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].state, State::differs);
  EXPECT_EQ(again[0].detail, "partitions is 2, declared 5");
  EXPECT_EQ(topic("orders").partitions.size(), 2u);
}

TEST_F(DeclaredTopicsTest, WhatIsDeclaredNoMoreIsNotWaitedFor) {
  make({declared("wide", 1, 2), declared("broad", 1, 2)});
  make({declared("broad", 1, 2)});
  create("wide", 1);
  create("broad", 1);
  world_.run_for(seconds(1500));
  EXPECT_EQ(lines_with("topic=wide differences"), 0);
  EXPECT_EQ(lines_with("topic=broad differences"), 1) << "by one of the two that wait";
}

TEST_F(DeclaredTopicsTest, OfTheBrokersOwnGoBeforeWhatTheirOwnerWouldChoose) {
  auto own = declared("accounts", 1, 3);
  own.configs.emplace_back("retention.ms", "-1");
  own.configs.emplace_back("segment.bytes", "1048576");
  broker_->own_topic(own);
  auto accounts = declared("accounts", 4);
  accounts.configs.emplace_back("segment.bytes", "2097152");
  make({accounts});
  EXPECT_EQ(topic("accounts").partitions.size(), 4u);
  EXPECT_TRUE(topic("accounts").internal);
  EXPECT_EQ(setting("accounts", "retention.ms"), "-1");
  EXPECT_EQ(setting("accounts", "segment.bytes"), "2097152");
}

}  // namespace
}  // namespace millrace::kernel
