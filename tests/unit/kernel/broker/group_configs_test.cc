// Settings that groups have of their own.
#include <chrono>

#include <gmock/gmock.h>

#include <millrace/groups.h>

#include "broker_fixture.h"
#include "kernel/cluster/znodes.h"

namespace millrace::kernel {
namespace {

using enum ConfigOperation;
using ::testing::ElementsAre;

constexpr auto group_type = ConfigResourceType::group;
constexpr auto session_timeout = "consumer.session.timeout.ms";
constexpr auto heartbeat_interval = "consumer.heartbeat.interval.ms";

/// Says that there is a plugin for groups; nobody calls it.
class SomeProvider final : public ServiceProvider {
 public:
  Result<> connect(Broker&) override { return {}; }
  void* service(std::string_view id) noexcept override {
    return id == GroupService::service_id ? this : nullptr;
  }
};

class GroupConfigsTest : public BrokerTest {
 protected:
  GroupConfigsTest() { broker_->offer_all_of(provider_); }

  ConfigsDescribed describe(std::string group, std::vector<std::string> names = {}) {
    const std::vector<ConfigQuery> queries{{{group_type, std::move(group)}, std::move(names)}};
    auto answer = on_shard(1, [&] { return broker_->configs().describe(session(1), queries); });
    EXPECT_TRUE(answer) << to_string(answer.error());
    return answer->at(0);
  }
  std::string value_of(const std::string& group, const std::string& name) {
    const auto described = describe(group, {name});
    return described.entries.empty() ? described.message : *described.entries[0].value;
  }
  std::string alter(std::string group, std::vector<ConfigChange> changes) {
    const AlterConfigsRequest request{{{{group_type, std::move(group)}, std::move(changes)}}};
    auto answer = on_shard(0, [&] { return broker_->configs().alter(session(0), request); });
    EXPECT_TRUE(answer) << to_string(answer.error());
    const auto& one = answer->at(0);
    return one.error == ErrorCode::none ? "done"
                                        : std::string(name_of(one.error)) + ": " + one.message;
  }
  std::vector<std::string> configured() {
    auto listed = on_shard(0, [&] { return broker_->configs().list(session(0), {group_type}); });
    EXPECT_TRUE(listed);
    std::vector<std::string> names;
    for (const auto& resource : *listed) names.push_back(resource.name);
    return names;
  }

  SomeProvider provider_;
};

TEST_F(GroupConfigsTest, AreTheBrokersUntilTheyAreSet) {
  const auto before = describe("readers");
  ASSERT_EQ(before.entries.size(), 3u);
  EXPECT_EQ(before.entries[1].name, heartbeat_interval);
  EXPECT_EQ(before.entries[1].value, "5000");
  EXPECT_EQ(before.entries[1].source, ConfigSource::fallback);
  EXPECT_EQ(before.entries[1].type, ConfigType::int32);
  EXPECT_EQ(alter("readers", {{session_timeout, set, "50000"}}), "done");
  const auto after = describe("readers", {session_timeout}).entries.at(0);
  EXPECT_EQ(after.value, "50000");
  EXPECT_EQ(after.source, group_config_source);
  ASSERT_EQ(after.synonyms.size(), 2u);
  EXPECT_EQ(after.synonyms[1].name, "group.consumer.session.timeout.ms");
  EXPECT_EQ(after.synonyms[1].value, "45000");
  EXPECT_EQ(value_of("others", session_timeout), "45000");
  EXPECT_THAT(configured(), ElementsAre("readers"));
  EXPECT_EQ(alter("readers", {{session_timeout, remove, {}}}), "done");
  EXPECT_EQ(value_of("readers", session_timeout), "45000");
  EXPECT_THAT(configured(), ElementsAre());
}

TEST_F(GroupConfigsTest, OutliveARestartWhateverTheGroupsName) {
  const std::string odd = "../a b%/\xc3\xa4.c";
  EXPECT_EQ(alter(odd, {{session_timeout, set, "46000"}}), "done");
  EXPECT_EQ(alter("readers", {{heartbeat_interval, set, "6000"}}), "done");
  restart();
  broker_->offer_all_of(provider_);
  EXPECT_EQ(value_of(odd, session_timeout), "46000");
  EXPECT_EQ(value_of("readers", heartbeat_interval), "6000");
  EXPECT_THAT(configured(), ElementsAre(odd, "readers"));
}

TEST_F(GroupConfigsTest, AreBoundedByTheBrokers) {
  EXPECT_EQ(alter("g", {{session_timeout, set, "44999"}}),
            "INVALID_CONFIG: consumer.session.timeout.ms must be in the range 45000 to 60000 "
            "inclusive.");
  EXPECT_EQ(alter("g", {{session_timeout, set, "60001"}}),
            "INVALID_CONFIG: consumer.session.timeout.ms must be in the range 45000 to 60000 "
            "inclusive.");
  EXPECT_EQ(alter("g", {{heartbeat_interval, set, "4999"}}),
            "INVALID_CONFIG: consumer.heartbeat.interval.ms must be in the range 5000 to 15000 "
            "inclusive.");
  EXPECT_THAT(alter("g", {{session_timeout, set, "soon"}}),
              ::testing::StartsWith("INVALID_CONFIG: "));
  EXPECT_EQ(alter("g", {{"consumer.size", set, "1"}}),
            "INVALID_CONFIG: Unknown group config name: consumer.size");
  EXPECT_EQ(alter("g", {{session_timeout, set, "60000"}, {heartbeat_interval, set, "15000"}}),
            "done");
  EXPECT_THAT(configured(), ElementsAre("g"));
}

TEST_F(GroupConfigsTest, OfNoGroupThereAreNone) {
  EXPECT_EQ(describe("").message, "Group name must not be empty");
  EXPECT_EQ(alter("", {{session_timeout, set, "50000"}}),
            "INVALID_REQUEST: Group name must not be empty");
  EXPECT_EQ(alter(std::string(2000, 'g'), {{session_timeout, set, "50000"}}),
            "INVALID_REQUEST: Groups with names of more than 1024 bytes have no settings of their "
            "own.");
}

}  // namespace
}  // namespace millrace::kernel
