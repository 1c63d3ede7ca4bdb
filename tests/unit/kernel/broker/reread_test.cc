// What a broker takes over while it runs when its configuration has been read again.
#include "broker_fixture.h"

namespace millrace::kernel {
namespace {

class RereadTest : public BrokerTest {
 protected:
  void use_defaults(std::map<std::string, std::string> defaults) {
    const auto used =
        world_.run(node_.control(), [&] { return broker_->use_defaults(std::move(defaults)); });
    EXPECT_TRUE(used) << to_string(used.error());
  }
  MetadataAnswer metadata(std::size_t shard, MetadataRequest request) {
    auto answer = on_shard(shard, [&] { return broker_->metadata(session(shard), request); });
    EXPECT_TRUE(answer) << to_string(answer.error());
    return *std::move(answer);
  }
  ConfigEntry setting(ConfigResourceType type, const std::string& resource,
                      const std::string& name) {
    std::vector<ConfigQuery> queries(1);
    queries[0].resource = {type, resource};
    auto described =
        on_shard(1, [&] { return broker_->configs().describe(session(1), std::move(queries)); });
    EXPECT_TRUE(described) << to_string(described.error());
    for (const auto& entry : described->at(0).entries) {
      if (entry.name == name) return entry;
    }
    return {};
  }
};

TEST_F(RereadTest, TopicsInheritDefaultsThatCountFromNowOn) {
  create("orders", 2);
  use_defaults({{"log.retention.ms", "60000"}, {"message.max.bytes", "100"}});
  const auto retention = setting(ConfigResourceType::topic, "orders", "retention.ms");
  EXPECT_EQ(retention.value, "60000");
  EXPECT_EQ(retention.source, ConfigSource::static_broker);
  // The partitions themselves go by it.
  for (const std::int32_t partition : {0, 1}) {
    const auto answer = produce(0, produce_request("orders", {partition}, std::string(200, 'x')));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->topics[0].partitions[0].error, ErrorCode::message_too_large);
  }
  use_defaults({});
  EXPECT_EQ(setting(ConfigResourceType::topic, "orders", "retention.ms").value, "604800000");
  const auto answer = produce(0, produce_request("orders", {0}, std::string(200, 'x')));
  EXPECT_EQ(answer->topics[0].partitions[0].error, ErrorCode::none);
}

TEST_F(RereadTest, WhatIsSetWhileTheBrokerRunsStaysStronger) {
  AlterConfigsRequest request;
  request.alterations.push_back({.resource = {ConfigResourceType::broker, "1"}, .changes = {}});
  request.alterations[0].changes.push_back({"log.retention.ms", ConfigOperation::set, "1000"});
  const auto altered = on_shard(0, [&] { return broker_->configs().alter(session(0), request); });
  ASSERT_TRUE(altered) << to_string(altered.error());
  use_defaults({{"log.retention.ms", "60000"}});
  EXPECT_EQ(setting(ConfigResourceType::broker, "1", "log.retention.ms").value, "1000");
}

TEST_F(RereadTest, NewTopicsAreMadeByThem) {
  use_defaults({{"num.partitions", "4"}, {"auto.create.topics.enable", "true"}});
  const MetadataRequest asked{.topics = std::vector<TopicName>{{"fresh", {}}}, .auto_create = true};
  EXPECT_EQ(metadata(0, asked).topics.at(0).partitions.size(), 4u);
  use_defaults({{"auto.create.topics.enable", "false"}});
  const MetadataRequest other{.topics = std::vector<TopicName>{{"other", {}}}, .auto_create = true};
  EXPECT_EQ(metadata(0, other).topics.at(0).error, ErrorCode::unknown_topic_or_partition);
}

TEST_F(RereadTest, ClientsAreToldOfAddressesThatChange) {
  const MetadataRequest asked{.topics = std::vector<TopicName>(), .auto_create = false};
  EXPECT_EQ(metadata(0, asked).brokers.at(0).address.port, 9092);
  std::vector<Endpoint> endpoints{{"kafka", {"b1", 9093}, {"b1", 9093}},
                                  {"inner", {"b1", 9094}, {"b1", 9094}}};
  const auto told = world_.run(node_.control(), [&] { return broker_->announce_again(endpoints); });
  ASSERT_TRUE(told) << to_string(told.error());
  for (const std::size_t shard : {0, 1}) {
    EXPECT_EQ(metadata(shard, asked).brokers.at(0).address.port, 9093);
  }
  const auto listeners = setting(ConfigResourceType::broker, "1", "advertised.listeners").value;
  EXPECT_EQ(listeners, "inner://b1:9094,kafka://b1:9093");
}

TEST_F(RereadTest, ACodecThatComesIsUsedOnEveryShard) {
  auto gzip = millrace::testing::load_plugin(MILLRACE_PLUGIN_DIR "/compression/gzip.so", node_);
  ASSERT_TRUE(gzip) << to_string(gzip.error());
  Codecs codecs;
  codecs.add(*gzip->registered().codecs.at(0));
  create("orders", 2);
  const auto send = [&](std::int32_t partition) {
    auto request = produce_request("orders", {partition}, "x");
    BatchBuilder builder({.compression = CompressionId::gzip});
    builder.add(node_.clock().wall(), std::nullopt, as_bytes(std::string_view("zipped")));
    auto batch = std::move(builder).finish(codecs);
    EXPECT_TRUE(batch);
    request.topics[0].partitions[0].records = *std::move(batch);
    auto answer = produce(0, std::move(request));
    EXPECT_TRUE(answer);
    return answer->topics[0].partitions[0].error;
  };
  for (const std::int32_t partition : {0, 1}) {
    EXPECT_EQ(send(partition), ErrorCode::unsupported_compression_type);
  }
  const auto used = world_.run(node_.control(), [&] { return broker_->use(codecs); });
  ASSERT_TRUE(used) << to_string(used.error());
  for (const std::int32_t partition : {0, 1}) EXPECT_EQ(send(partition), ErrorCode::none);
}

}  // namespace
}  // namespace millrace::kernel
