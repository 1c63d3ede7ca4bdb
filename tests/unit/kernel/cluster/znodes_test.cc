#include "kernel/cluster/znodes.h"

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

TEST(ZnodesTest, NamesTheKeysThatKafkaUses) {
  EXPECT_EQ(znodes::broker(3), "/brokers/ids/3");
  EXPECT_EQ(znodes::topic("orders"), "/brokers/topics/orders");
  EXPECT_EQ(znodes::partition_state("orders", 2), "/brokers/topics/orders/partitions/2/state");
  EXPECT_EQ(znodes::topic_config("orders"), "/config/topics/orders");
}

TEST(ZnodesTest, ReadsATopicAsKafkaWritesIt) {
  const auto topic = znodes::decode_topic(
      "orders", R"({"removing_replicas":{},"partitions":{"2":[1],"1":[3,1],"0":[2,3]},)"
                R"("topic_id":"AAECAwQFBgcICQoLDA0ODw","adding_replicas":{},"version":3})");
  ASSERT_TRUE(topic) << to_string(topic.error());
  ASSERT_EQ(topic->partitions.size(), 3u);
  EXPECT_EQ(topic->partitions[0].replicas, (std::vector<std::int32_t>{2, 3}));
  EXPECT_EQ(topic->partitions[1].replicas, (std::vector<std::int32_t>{3, 1}));
  EXPECT_EQ(to_string(topic->id), "AAECAwQFBgcICQoLDA0ODw");
}

TEST(ZnodesTest, ReadsATopicFromBeforeTopicIds) {
  const auto topic = znodes::decode_topic("old", R"({"version":1,"partitions":{"0":[0]}})");
  ASSERT_TRUE(topic);
  EXPECT_TRUE(topic->id.is_none());
}

TEST(ZnodesTest, RefusesPartitionsWithAGap) {
  const auto topic = znodes::decode_topic("gap", R"({"version":1,"partitions":{"0":[0],"2":[0]}})");
  ASSERT_FALSE(topic);
  EXPECT_EQ(topic.error().code, Errc::corrupt);
  EXPECT_NE(topic.error().detail.find("/brokers/topics/gap"), std::string::npos);
}

TEST(ZnodesTest, ReadsAPartitionState) {
  PartitionState state;
  const auto read = znodes::decode_partition_state(
      R"({"controller_epoch":7,"leader":2,"version":1,"leader_epoch":5,"isr":[2,3]})", state);
  ASSERT_TRUE(read);
  EXPECT_EQ(state.leader, 2);
  EXPECT_EQ(state.leader_epoch, Epoch{5});
  EXPECT_EQ(state.in_sync, (std::vector<std::int32_t>{2, 3}));
}

TEST(ZnodesTest, WritesWhatItReads) {
  TopicState topic;
  topic.name = "orders";
  topic.id = *parse_uuid("AAECAwQFBgcICQoLDA0ODw");
  topic.partitions.resize(12);
  for (auto& partition : topic.partitions) partition.replicas = {1, 2};
  const auto again = znodes::decode_topic("orders", znodes::encode_topic(topic));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, topic.id);
  ASSERT_EQ(again->partitions.size(), 12u);
  EXPECT_EQ(again->partitions[11].replicas, topic.partitions[11].replicas);

  const BrokerState broker{
      .id = 4, .rack = "r1", .endpoints = {{"kafka", {"::1", 9092}}, {"inside", {"host", 9093}}}};
  const auto registration = znodes::encode_broker(broker, Timestamp{1000});
  const auto broker_again = znodes::decode_broker(4, registration);
  ASSERT_TRUE(broker_again) << to_string(broker_again.error());
  EXPECT_EQ(broker_again->endpoints, broker.endpoints);
  EXPECT_EQ(broker_again->rack, "r1");
  // Kafka's tools look a listener up by its name in capitals.
  EXPECT_TRUE(registration.contains(R"({"INSIDE":"PLAINTEXT","KAFKA":"PLAINTEXT"})"))
      << registration;

  const std::map<std::string, std::string> configs{{"retention.ms", "5"}, {"cleanup.policy", "x"}};
  EXPECT_EQ(*znodes::decode_configs("key", znodes::encode_configs(configs)), configs);

  const auto block = znodes::decode_producer_ids(
      znodes::encode_producer_ids({.broker = 2, .first = 3000, .last = 3999}));
  ASSERT_TRUE(block);
  EXPECT_EQ(block->first, 3000);
  EXPECT_EQ(block->last, 3999);
}

TEST(ZnodesTest, SettingsOfAGroupHaveAKeyWhateverItsName) {
  using znodes::ConfigEntity;
  const ConfigEntity group{ConfigEntity::Kind::group, "../a b%"};
  EXPECT_EQ(znodes::configs_of(group), "/config/groups/%2E%2E%2Fa%20b%25");
  EXPECT_EQ(znodes::group_of("%2E%2E%2Fa%20b%25"), group.name);
  EXPECT_EQ(znodes::group_of("a%2"), std::nullopt);
  EXPECT_EQ(znodes::group_of("a%xy"), std::nullopt);
  const auto read = znodes::decode_config_change(znodes::encode_config_change(group));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, ConfigEntity::Kind::group);
  EXPECT_EQ(read->name, group.name);
  EXPECT_EQ(group_of_config_key(znodes::config_key_of(group)), group.name);
  EXPECT_EQ(group_of_config_key(all_brokers_key), std::nullopt);
}

TEST(ZnodesTest, NamesTheKeyOfWhatItCannotRead) {
  for (const auto* text : {"", "[]", "{", R"({"id":7})", R"({"version":"1"})"}) {
    const auto id = znodes::decode_cluster_id(text);
    ASSERT_FALSE(id) << text;
    EXPECT_NE(id.error().detail.find("/cluster/id"), std::string::npos);
  }
}

// Each as this version writes it, but of the next version.
TEST(ZnodesTest, RefusesFormatsOfALaterVersion) {
  const auto later = [](std::string text, std::string_view now, std::string_view next) {
    const auto at = text.find(now);
    EXPECT_NE(at, std::string::npos) << text;
    return text.replace(at, now.size(), next);
  };
  const auto expect_refused = [](const auto& read, std::string_view sentence) {
    ASSERT_FALSE(read) << sentence;
    EXPECT_EQ(read.error().code, Errc::incompatible);
    EXPECT_EQ(read.error().detail,
              std::string(sentence) + "; start the version of Millrace that has written it");
  };
  TopicState topic;
  topic.partitions.push_back({.leader = 1, .replicas = {1}, .in_sync = {1}});
  expect_refused(znodes::decode_topic("orders", later(znodes::encode_topic(topic), R"("version":3)",
                                                      R"("version":4)")),
                 "/brokers/topics/orders is of format version 4, and this broker knows up to 3");
  const auto broker = znodes::encode_broker({.id = 4}, Timestamp{1000});
  expect_refused(znodes::decode_broker(4, later(broker, R"("version":5)", R"("version":6)")),
                 "/brokers/ids/4 is of format version 6, and this broker knows up to 5");
  expect_refused(
      znodes::decode_cluster_id(later(znodes::encode_cluster_id("x"), R"("1")", R"("2")")),
      "/cluster/id is of format version 2, and this broker knows up to 1");
  expect_refused(znodes::decode_controller(R"({"version":3,"brokerid":1})"),
                 "/controller is of format version 3, and this broker knows up to 2");
  expect_refused(
      znodes::decode_configs("/config/topics/orders",
                             later(znodes::encode_configs({}), R"("version":1)", R"("version":2)")),
      "/config/topics/orders is of format version 2, and this broker knows up to 1");
  expect_refused(znodes::decode_config_change(
                     later(znodes::encode_config_change({}), R"("version":2)", R"("version":3)")),
                 "/config/changes is of format version 3, and this broker knows up to 2");
  PartitionState state;
  expect_refused(
      znodes::decode_partition_state(
          later(znodes::encode_partition_state({}, 1), R"("version":1)", R"("version":2)"), state),
      "partition state is of format version 2, and this broker knows up to 1");
  expect_refused(znodes::decode_producer_ids(
                     later(znodes::encode_producer_ids({}), R"("version":1)", R"("version":2)")),
                 "/latest_producer_id_block is of format version 2, and this broker knows up to 1");
}

TEST(ZnodesTest, ARegistrationTellsTheLevelsThatTheBrokerKnows) {
  EXPECT_NE(znodes::encode_broker({.id = 4}, Timestamp{1000})
                .find(R"("features":{"millrace.level":{"min_version":1,"max_version":1}})"),
            std::string::npos);
}

}  // namespace
}  // namespace millrace::kernel
