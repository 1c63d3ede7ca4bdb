// DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources, from a client's
// request to the broker and back, through a connection.
#include <optional>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/kafka/alter_configs.h>
#include <millrace/kafka/describe_configs.h>
#include <millrace/kafka/incremental_alter_configs.h>
#include <millrace/kafka/list_config_resources.h>

#include "fakes.h"

namespace millrace::kafka_transport::testing {
namespace {

using namespace std::string_view_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ConfigHandlersTest : public ConnectionFixture {
 protected:
  ConfigHandlersTest() { connect(); }
};

ConfigEntry retention_entry() {
  return {.name = "retention.ms",
          .value = "5",
          .source = ConfigSource::topic,
          .type = ConfigType::int64,
          .synonyms = {{"retention.ms", "5", ConfigSource::topic},
                       {"log.retention.hours", "168", ConfigSource::fallback}},
          .documentation = "How long."};
}

TEST_F(ConfigHandlersTest, DescribeConfigsTellsWhatItsVersionAndItsRequestAskFor) {
  const ConfigEntry secret{.name = "secret", .value = "hidden", .sensitive = true};
  broker.configs().described = {
      {.resource = {ConfigResourceType::topic, "orders"}, .entries = {retention_entry(), secret}}};
  kafka::DescribeConfigsRequest asked;
  asked.resources.push_back({.resource_type = 2, .resource_name = "orders"});
  asked.resources[0].configuration_keys = {"retention.ms", "secret"};

  const auto oldest = ask(0, asked);
  const auto& query = broker.configs().describe_asked.at(0).at(0);
  EXPECT_EQ(query.resource, (ConfigResource{ConfigResourceType::topic, "orders"}));
  EXPECT_THAT(query.names, ElementsAre("retention.ms", "secret"));
  EXPECT_FALSE(oldest.results.at(0).configs.at(0).is_default);

  const auto plain = ask(4, asked);
  const auto& config = plain.results.at(0).configs.at(0);
  EXPECT_EQ(config.value, "5");
  EXPECT_EQ(config.config_source, 1);
  EXPECT_EQ(config.config_type, 5);
  EXPECT_THAT(config.synonyms, IsEmpty());
  EXPECT_FALSE(config.documentation);
  EXPECT_FALSE(plain.results[0].configs.at(1).value);
  EXPECT_TRUE(plain.results[0].configs[1].is_sensitive);

  asked.include_synonyms = true;
  asked.include_documentation = true;
  const auto full = ask(4, asked);
  const auto& told = full.results.at(0).configs.at(0);
  ASSERT_THAT(told.synonyms, SizeIs(2));
  EXPECT_EQ(told.synonyms[1].name, "log.retention.hours");
  EXPECT_EQ(told.synonyms[1].source, 5);
  EXPECT_EQ(told.documentation, "How long.");
}

TEST_F(ConfigHandlersTest, DescribeConfigsWithoutNamesAsksForAll) {
  kafka::DescribeConfigsRequest asked;
  asked.resources.push_back({.resource_type = 4, .resource_name = "1"});
  ask(1, asked);
  EXPECT_THAT(broker.configs().describe_asked.at(0).at(0).names, IsEmpty());
}

TEST_F(ConfigHandlersTest, AlterConfigsReplacesAllSettings) {
  kafka::AlterConfigsRequest asked;
  asked.validate_only = true;
  asked.resources.push_back({.resource_type = 2, .resource_name = "orders"});
  asked.resources[0].configs.push_back({.name = "retention.ms", .value = "5"});
  asked.resources[0].configs.push_back({.name = "segment.ms", .value = std::nullopt});
  const auto answer = ask(2, asked);
  const auto& request = broker.configs().alter_asked.at(0);
  EXPECT_TRUE(request.validate_only);
  const auto& alteration = request.alterations.at(0);
  EXPECT_TRUE(alteration.replace_all);
  EXPECT_EQ(alteration.changes.at(0).operation, ConfigOperation::set);
  EXPECT_EQ(alteration.changes[0].value, "5");
  EXPECT_FALSE(alteration.changes.at(1).value);
  EXPECT_EQ(answer.responses.at(0).resource_name, "orders");
  EXPECT_FALSE(answer.responses[0].error_message);
}

TEST_F(ConfigHandlersTest, IncrementalAlterConfigsKeepsEachOperation) {
  kafka::IncrementalAlterConfigsRequest asked;
  asked.resources.push_back({.resource_type = 4, .resource_name = ""});
  for (const std::int8_t operation : {0, 1, 2, 3, 9}) {
    asked.resources[0].configs.push_back(
        {.name = "log.cleanup.policy",
         .config_operation = operation,
         .value = operation == 1 ? std::nullopt : std::optional("compact"sv)});
  }
  EXPECT_EQ(ask(1, asked).responses.at(0).resource_type, 4);
  const auto& alteration = broker.configs().alter_asked.at(0).alterations.at(0);
  EXPECT_FALSE(alteration.replace_all);
  ASSERT_THAT(alteration.changes, SizeIs(5));
  EXPECT_EQ(alteration.changes[1].operation, ConfigOperation::remove);
  EXPECT_EQ(alteration.changes[3].operation, ConfigOperation::subtract);
  EXPECT_EQ(alteration.changes[4].operation, ConfigOperation{9});
}

TEST_F(ConfigHandlersTest, ListConfigResourcesKnowsTypesSinceItsSecondVersion) {
  broker.configs().listed = {{ConfigResourceType::topic, "orders"}};
  ask(0, kafka::ListConfigResourcesRequest{});
  EXPECT_THAT(broker.configs().list_asked.at(0), ElementsAre(ConfigResourceType::client_metrics));
}

}  // namespace
}  // namespace millrace::kafka_transport::testing
