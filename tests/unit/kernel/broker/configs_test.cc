#include "kernel/broker/configs.h"

#include <algorithm>
#include <chrono>

#include <gmock/gmock.h>

#include "broker_fixture.h"
#include "kernel/cluster/znodes.h"

namespace millrace::kernel {
namespace {

using ::testing::HasSubstr;
using enum ConfigOperation;

constexpr auto topic_type = ConfigResourceType::topic;
constexpr auto broker_type = ConfigResourceType::broker;

class ConfigsTest : public BrokerTest {
 protected:
  ConfigsDescribed describe(ConfigResource resource, std::vector<std::string> names = {}) {
    const std::vector<ConfigQuery> queries{{std::move(resource), std::move(names)}};
    auto answer = on_shard(1, [&] { return broker_->configs().describe(session(1), queries); });
    EXPECT_TRUE(answer) << to_string(answer.error());
    return answer->at(0);
  }
  std::optional<std::string> value_of(ConfigResource resource, const std::string& name) {
    const auto described = describe(std::move(resource), {name});
    return described.entries.empty() ? std::nullopt : described.entries[0].value;
  }
  std::vector<ConfigsAltered> alter(std::vector<ConfigAlteration> alterations,
                                    bool validate_only = false) {
    const AlterConfigsRequest request{std::move(alterations), validate_only};
    auto answer = on_shard(0, [&] { return broker_->configs().alter(session(0), request); });
    EXPECT_TRUE(answer) << to_string(answer.error());
    return *std::move(answer);
  }
  ConfigsAltered set_one(ConfigResource resource, std::string name, std::string value) {
    return alter({{std::move(resource), {{std::move(name), set, std::move(value)}}}}).at(0);
  }
  ErrorCode produced(const std::string& topic, std::string value) {
    const auto answer = produce(0, produce_request(topic, {0}, std::move(value)));
    EXPECT_TRUE(answer) << to_string(answer.error());
    return answer->topics.at(0).partitions.at(0).error;
  }
};

TEST_F(ConfigsTest, AChangeIsInEffectWhenItIsAnswered) {
  create("orders", 1);
  const std::string large(500, 'x');
  EXPECT_EQ(produced("orders", large), ErrorCode::none);
  EXPECT_EQ(set_one({topic_type, "orders"}, "max.message.bytes", "200").error, ErrorCode::none);
  EXPECT_EQ(produced("orders", large), ErrorCode::message_too_large);
  EXPECT_EQ(alter({{{topic_type, "orders"}, {{"max.message.bytes", remove, {}}}}}).at(0).error,
            ErrorCode::none);
  EXPECT_EQ(produced("orders", large), ErrorCode::none);
}

TEST_F(ConfigsTest, ABrokersSettingReachesTopicsThatHaveNoneOfTheirOwn) {
  create("small", 1);
  create("large", 1);
  set_one({topic_type, "large"}, "max.message.bytes", "1000000");
  set_one({broker_type, ""}, "message.max.bytes", "200");
  const std::string value(500, 'x');
  EXPECT_EQ(produced("small", value), ErrorCode::message_too_large);
  EXPECT_EQ(produced("large", value), ErrorCode::none);
  EXPECT_EQ(value_of({topic_type, "large"}, "max.message.bytes"), "1000000");
  set_one({broker_type, "1"}, "message.max.bytes", "2000");
  EXPECT_EQ(produced("small", value), ErrorCode::none);
}

TEST_F(ConfigsTest, ChangesOutliveARestart) {
  create("orders", 1);
  set_one({topic_type, "orders"}, "retention.ms", "1000");
  set_one({broker_type, ""}, "log.segment.bytes", "2000000");
  set_one({broker_type, "1"}, "log.roll.ms", "3000");
  restart();
  EXPECT_EQ(value_of({topic_type, "orders"}, "retention.ms"), "1000");
  EXPECT_EQ(value_of({topic_type, "orders"}, "segment.bytes"), "2000000");
  EXPECT_EQ(value_of({topic_type, "orders"}, "segment.ms"), "3000");
  EXPECT_EQ(value_of({broker_type, ""}, "log.segment.bytes"), "2000000");
}

TEST_F(ConfigsTest, WhatIsStoredAndCannotBeUsedKeepsNothingFromStarting) {
  create("orders", 1);
  const auto spoil = [this](std::string key, const ConfigMap& configs) {
    std::vector<Write> writes;
    writes.push_back({.key = std::move(key), .value = znodes::encode_configs(configs)});
    return coordination().commit(std::move(writes));
  };
  const ConfigMap of_topic{{"retention.ms", "soon"}, {"no.such", "1"}, {"segment.ms", "5000"}};
  const ConfigMap of_all{{"log.segment.bytes", "large"}, {"no.such", "1"}};
  ASSERT_TRUE(
      world_.run(node_.control(), [&] { return spoil(znodes::topic_config("orders"), of_topic); }));
  ASSERT_TRUE(world_.run(node_.control(),
                         [&] { return spoil(znodes::broker_config(all_brokers_key), of_all); }));
  restart();
  EXPECT_EQ(produced("orders", "value"), ErrorCode::none);
  EXPECT_EQ(value_of({topic_type, "orders"}, "retention.ms"), "soon");
  EXPECT_EQ(value_of({topic_type, "orders"}, "no.such"), "1");
  EXPECT_EQ(value_of({topic_type, "orders"}, "segment.ms"), "5000");
  EXPECT_EQ(value_of({topic_type, "orders"}, "segment.bytes"), "1073741824");
}

TEST_F(ConfigsTest, WhatIsOnlyValidatedIsNotDone) {
  create("orders", 1);
  const ConfigResource orders{topic_type, "orders"};
  EXPECT_EQ(alter({{orders, {{"retention.ms", set, "7"}}}}, true).at(0).error, ErrorCode::none);
  EXPECT_EQ(alter({{orders, {{"retention.ms", set, "x"}}}}, true).at(0).error,
            ErrorCode::invalid_config);
  EXPECT_EQ(value_of(orders, "retention.ms"), "604800000");
}

TEST_F(ConfigsTest, EachResourceFailsAlone) {
  create("orders", 1);
  const auto answers = alter({{{topic_type, "nowhere"}, {{"retention.ms", set, "1"}}},
                              {{topic_type, "orders"}, {{"retention.ms", set, "2"}}},
                              {{topic_type, "twice"}, {}},
                              {{topic_type, "a/b"}, {}},
                              {{topic_type, "twice"}, {}},
                              {{topic_type, ""}, {}},
                              {{broker_type, "77"}, {{"log.retention.ms", set, "1"}}},
                              {{broker_type, "abc"}, {{"log.retention.ms", set, "1"}}},
                              {{ConfigResourceType{99}, "x"}, {}}});
  ASSERT_EQ(answers.size(), 9U);
  EXPECT_EQ(answers[0].error, ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(answers[1].error, ErrorCode::none);
  EXPECT_EQ(answers[2].message, "Each resource must appear at most once.");
  EXPECT_EQ(answers[3].error, ErrorCode::invalid_topic_exception);
  EXPECT_EQ(answers[4].error, ErrorCode::invalid_request);
  EXPECT_EQ(answers[5].message, "Default topic resources are not allowed.");
  EXPECT_EQ(answers[6].message, "Unexpected broker id, expected 1, but received 77");
  EXPECT_EQ(answers[7].error, ErrorCode::invalid_request);
  EXPECT_EQ(answers[8].message, "Unknown resource type 99");
  EXPECT_EQ(value_of({topic_type, "orders"}, "retention.ms"), "2");
}

TEST_F(ConfigsTest, DescribeSaysWhatIsNotThere) {
  EXPECT_EQ(describe({topic_type, "nowhere"}).error, ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(describe({topic_type, "a/b"}).error, ErrorCode::invalid_topic_exception);
  EXPECT_EQ(describe({broker_type, "77"}).message,
            "Unexpected broker id, expected 1 or empty string, but received 77");
  EXPECT_THAT(describe({broker_type, "abc"}).message, HasSubstr("must be an integer"));
  EXPECT_EQ(describe({ConfigResourceType::group, "g"}).message,
            "No plugin for groups is loaded; they have no settings.");
  EXPECT_TRUE(describe({broker_type, "1"}, {"no.such"}).entries.empty());
}

TEST_F(ConfigsTest, ABrokerTellsWhereItListens) {
  EXPECT_EQ(value_of({broker_type, "1"}, "advertised.listeners"), "kafka://b1:9092");
}

TEST_F(ConfigsTest, TopicsAndBrokersAreListed) {
  create("orders", 1);
  const std::vector<ConfigResourceType> all;
  const auto listed = on_shard(0, [&] { return broker_->configs().list(session(0), all); });
  ASSERT_TRUE(listed);
  EXPECT_EQ(*listed, (std::vector<ConfigResource>{{ConfigResourceType::broker_logger, "1"},
                                                  {broker_type, "1"},
                                                  {topic_type, "orders"}}));
}

}  // namespace
}  // namespace millrace::kernel
