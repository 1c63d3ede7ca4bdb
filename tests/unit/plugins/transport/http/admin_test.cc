// /admin from request to answer: what the broker is asked, and what the client reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server_fixture.h"

namespace millrace::http_transport::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AdminTest : public ServerFixture {
 protected:
  void SetUp() override {
    broker.topics = {{"orders", 2}, {"tasks", 1}};
    start();
  }
  /// "200 {…}"
  std::string result(std::string_view method, std::string_view path, std::string_view body = {}) {
    const auto answer = ask(method, path, body);
    auto text = body_of(answer);
    if (text.ends_with('\n')) text.pop_back();
    return std::to_string(status_of(answer)) + ' ' + text;
  }
  /// That a body is refused with `reason`.
  void expect_bad_body(std::string_view method, std::string_view path, std::string_view body,
                       std::string_view reason) {
    const auto found = result(method, path, body);
    EXPECT_THAT(found, ::testing::StartsWith(R"(400 {"error":"invalid_body","message":")"));
    EXPECT_THAT(found, HasSubstr(reason));
  }
};

TEST_F(AdminTest, ListsBrokers) {
  EXPECT_EQ(result("GET", "/admin/brokers"),
            R"(200 {"cluster_id":"cluster","controller":1,)"
            R"("brokers":[{"id":1,"address":"b1:9092","rack":"r1"}]})");
}

TEST_F(AdminTest, ListsTopics) {
  EXPECT_THAT(result("GET", "/admin/topics"),
              HasSubstr(R"("name":"orders","id":"AQEBAQEBAQEBAQEBAQEBAQ","internal":false,)"
                        R"("partitions":2},{"name":"tasks")"));
}

TEST_F(AdminTest, ShowsATopicWithOffsetsAndSettings) {
  broker.admin_calls.folders = {{.path = "/data",
                                 .topics = {{"orders",
                                             {{.partition = 0,
                                               .bytes = 77,
                                               .log_start = Offset{1},
                                               .last_stable = Offset{2},
                                               .high_watermark = Offset{3},
                                               .end = Offset{4}}}}}}};
  broker.config_calls.entries = {
      {.name = "retention.ms", .value = "1000", .source = ConfigSource::topic},
      {.name = "secret", .value = "x", .sensitive = true}};
  const auto shown = result("GET", "/admin/topics/orders");
  EXPECT_THAT(shown, HasSubstr(R"({"partition":0,"leader":1,"leader_epoch":0,"replicas":[1],)"
                               R"("in_sync":[1],"log_start":1,"last_stable":2,)"
                               R"("high_watermark":3,"log_end":4,"bytes":77})"));
  EXPECT_THAT(shown, HasSubstr(R"({"partition":1,"leader":1,"leader_epoch":0,"replicas":[1],)"
                               R"("in_sync":[1]})"));
  EXPECT_THAT(shown, HasSubstr(R"("configs":{"retention.ms":{"value":"1000","source":"topic"},)"
                               R"("secret":{"value":null,"source":"default","sensitive":true}})"));
}

TEST_F(AdminTest, AnUnknownTopicIsNotFound) {
  EXPECT_EQ(result("GET", "/admin/topics/none"),
            R"(404 {"error":"UNKNOWN_TOPIC_OR_PARTITION","message":"there is no topic none"})");
}

TEST_F(AdminTest, CreatesATopic) {
  EXPECT_THAT(
      result("POST", "/admin/topics",
             R"({"name":"new","partitions":3,"replication_factor":2,"validate_only":true,)"
             R"("configs":{"retention.ms":1000,"preallocate":true,"cleanup.policy":"compact"}})"),
      HasSubstr(R"(201 {"name":"new","id":)"));
  ASSERT_EQ(broker.admin_calls.creations.size(), 1U);
  const auto& asked = broker.admin_calls.creations[0];
  EXPECT_TRUE(asked.validate_only);
  ASSERT_EQ(asked.topics.size(), 1U);
  EXPECT_EQ(asked.topics[0].name, "new");
  EXPECT_EQ(asked.topics[0].partitions, 3);
  EXPECT_EQ(asked.topics[0].replication_factor, 2);
  using Setting = std::pair<std::string, std::optional<std::string>>;
  EXPECT_THAT(asked.topics[0].configs,
              ElementsAre(Setting("retention.ms", "1000"), Setting("preallocate", "true"),
                          Setting("cleanup.policy", "compact")));
}

TEST_F(AdminTest, WhatIsLeftOutIsTheBrokersChoice) {
  result("POST", "/admin/topics", R"({"name":"new"})");
  const auto& topic = broker.admin_calls.creations.at(0).topics.at(0);
  EXPECT_EQ(topic.partitions, -1);
  EXPECT_EQ(topic.replication_factor, -1);
}

TEST_F(AdminTest, ABodyIsCheckedMemberByMember) {
  const auto refused = [this](std::string_view body, std::string_view reason) {
    expect_bad_body("POST", "/admin/topics", body, reason);
  };
  refused("", "expected a JSON object");
  refused("{", "not JSON");
  refused("[]", "expected a JSON object, found []");
  refused("{}", "name: expected a text, found nothing");
  refused(R"({"name":7})", "name: expected a text, found 7");
  refused(R"({"name":"x","partitions":0})", "partitions: expected an integer from 1 to 2147483647");
  refused(R"({"name":"x","partitions":1.5})", "found 1.5");
  refused(R"({"name":"x","partitions":"3"})", R"(found \"3\")");
  refused(R"({"name":"x","validate_only":1})", "expected true or false");
  refused(R"({"name":"x","configs":[]})", "configs: expected an object");
  refused(R"({"name":"x","configs":{"a":[]}})", "a: expected a text, a number");
  refused(R"({"name":"x","partition":3})", R"(unknown member \"partition\"; known are name, )");
  EXPECT_TRUE(broker.admin_calls.creations.empty());
}

TEST_F(AdminTest, TheBrokersRefusalHasItsNameAndAFittingStatus) {
  broker.admin_calls.message = "why";
  const auto refused = [this](ErrorCode error) {
    broker.admin_calls.error = error;
    return result("POST", "/admin/topics", R"({"name":"x"})");
  };
  EXPECT_EQ(refused(ErrorCode::topic_already_exists),
            R"(409 {"error":"TOPIC_ALREADY_EXISTS","message":"why"})");
  EXPECT_THAT(refused(ErrorCode::invalid_config), HasSubstr("400 "));
  EXPECT_THAT(refused(ErrorCode::request_timed_out), HasSubstr("504 "));
  EXPECT_THAT(refused(ErrorCode::not_controller), HasSubstr("503 "));
  EXPECT_THAT(refused(ErrorCode::unknown_server_error), HasSubstr("500 "));
}

TEST_F(AdminTest, GrowsAndDeletesATopic) {
  EXPECT_EQ(result("PATCH", "/admin/topics/orders", R"({"partitions":6})"),
            R"(200 {"name":"orders","partitions":6})");
  EXPECT_EQ(broker.admin_calls.grown.at(0).name, "orders");
  EXPECT_EQ(broker.admin_calls.grown.at(0).partitions, 6);
  expect_bad_body("PATCH", "/admin/topics/orders", "{}", "partitions: expected");
  EXPECT_EQ(result("DELETE", "/admin/topics/orders"), R"(200 {"deleted":"orders"})");
  EXPECT_THAT(broker.admin_calls.deleted, ElementsAre("orders"));
}

TEST_F(AdminTest, ChangesSettings) {
  broker.config_calls.entries = {{.name = "retention.ms", .value = "1000"}};
  EXPECT_EQ(result("PATCH", "/admin/topics/orders/configs",
                   R"({"retention.ms":1000,"cleanup.policy":null})"),
            R"(200 {"configs":{"retention.ms":{"value":"1000","source":"default"}}})");
  const auto& alteration = broker.config_calls.alterations.at(0).alterations.at(0);
  EXPECT_EQ(alteration.resource.type, ConfigResourceType::topic);
  EXPECT_EQ(alteration.resource.name, "orders");
  EXPECT_FALSE(alteration.replace_all);
  ASSERT_EQ(alteration.changes.size(), 2U);
  EXPECT_EQ(alteration.changes[0].operation, ConfigOperation::set);
  EXPECT_EQ(alteration.changes[0].value, "1000");
  EXPECT_EQ(alteration.changes[1].operation, ConfigOperation::remove);

  result("PATCH", "/admin/brokers/1/configs", R"({"num.io.threads":8})");
  EXPECT_EQ(broker.config_calls.alterations.at(1).alterations.at(0).resource.type,
            ConfigResourceType::broker);
  expect_bad_body("PATCH", "/admin/topics/orders/configs", "[]", "expected an object of settings");

  broker.config_calls.error = ErrorCode::invalid_config;
  broker.config_calls.message = "no such setting";
  EXPECT_EQ(result("PATCH", "/admin/topics/orders/configs", R"({"x":1})"),
            R"(400 {"error":"INVALID_CONFIG","message":"no such setting"})");
}

TEST_F(AdminTest, TellsPluginsAndSettings) {
  broker.operations.loaded = {{"storage", "memory", "org.x.memory", "1.0", "/x/memory.so"},
                              {"transport", "x", "org.x.x", "2", "/x/x.so"}};
  broker.plugin_starts.starts = {{"storage", "x", {0}}, {"transport", "x", {1'796'100'503'999}}};
  broker.operations.set = {{"broker.id", "1", "default"},
                           {"transport.x.password", "", "m.toml:1:1", true}};
  EXPECT_EQ(result("GET", "/admin/plugins"),
            R"(200 {"plugins":[{"kind":"storage","instance":"memory","id":"org.x.memory",)"
            R"("version":"1.0","path":"/x/memory.so","table":"storage","since":null},)"
            R"({"kind":"transport","instance":"x","id":"org.x.x","version":"2","path":"/x/x.so",)"
            R"("table":"transport.x","since":"2026-12-01T04:48:23Z"}],"steps":[]})");
  EXPECT_EQ(result("GET", "/admin/config"),
            R"(200 {"settings":{"broker.id":{"value":"1","source":"default"},)"
            R"("transport.x.password":{"value":null,"source":"m.toml:1:1","sensitive":true}}})");
}

TEST_F(AdminTest, ChangesLogLevels) {
  EXPECT_EQ(result("GET", "/admin/log-level"), R"(200 {"level":"info","subsystems":{}})");
  EXPECT_EQ(result("PUT", "/admin/log-level", R"({"subsystem":"storage","level":"debug"})"),
            R"(200 {"level":"info","subsystems":{"storage":"debug"}})");
  EXPECT_EQ(result("PUT", "/admin/log-level", R"({"level":"warning"})"),
            R"(200 {"level":"warning","subsystems":{"storage":"debug"}})");
  EXPECT_EQ(result("PUT", "/admin/log-level", R"({"subsystem":"storage","level":null})"),
            R"(200 {"level":"warning","subsystems":{}})");
  EXPECT_TRUE(host->kept_log().contains("log level changed subsystem=storage level=debug"));
  expect_bad_body("PUT", "/admin/log-level", R"({"level":"loud"})", "expected trace, debug, info");
  expect_bad_body("PUT", "/admin/log-level", R"({})", "level is missing");
  expect_bad_body("PUT", "/admin/log-level", R"({"subsystem":"bad","level":"info"})", "no such");
}

TEST_F(AdminTest, ABrokerThatStartsOrStopsSaysWhich) {
  broker.stopping = true;
  EXPECT_EQ(result("GET", "/admin/topics"),
            R"(503 {"error":"stopping","message":"the broker is stopping"})");
  broker.operations.now = Operations::State::starting;
  EXPECT_EQ(result("GET", "/admin/topics"),
            R"(503 {"error":"starting","message":"the broker is starting; ask again"})");
}

TEST_F(AdminTest, AStopDoesNotWaitForAnAnswerBeyondItsGrace) {
  broker.slow = true;
  const auto stream = connect();
  send(*stream, "GET /admin/topics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  world.run_for(std::chrono::seconds(1));
  const auto began = world.now();
  stop();
  EXPECT_LT(world.now() - began, std::chrono::seconds(5));
}

}  // namespace
}  // namespace millrace::http_transport::testing
