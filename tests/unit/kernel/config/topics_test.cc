// [topic.NAME]: what is read, and every way to be wrong, with its place.
#include "config_fixture.h"

namespace millrace::kernel {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;
using TopicTablesTest = ConfigFixture;

TEST_F(TopicTablesTest, EverythingIsRead) {
  const auto settings = check({.path = write("millrace.toml",
                                             "[topic.orders]\n"
                                             "partitions = 6\n"
                                             "replication-factor = 3\n"
                                             "\"retention.ms\" = 86400000\n"
                                             "preallocate = true\n"
                                             "[topic.\"orders.bad\"]\n"),
                               .sets = {"topic.orders.\"retention.ms\"=-1"}});
  ASSERT_TRUE(settings) << to_error(settings.error()).detail;
  ASSERT_EQ(settings->topics.size(), 2);
  const auto& orders = settings->topics[0];
  EXPECT_EQ(orders.name, "orders");
  EXPECT_EQ(orders.partitions, 6);
  EXPECT_EQ(orders.replication_factor, 3);
  EXPECT_THAT(orders.configs, ElementsAre(Pair("preallocate", "true"), Pair("retention.ms", "-1")));
  EXPECT_EQ(orders.place.line, 1);
  EXPECT_EQ(orders.places.at("preallocate").line, 5);
  const auto& bad = settings->topics[1];
  EXPECT_EQ(bad.name, "orders.bad");
  EXPECT_EQ(bad.partitions, -1) << "as num.partitions says";
  EXPECT_EQ(bad.replication_factor, -1);
  EXPECT_THAT(bad.configs, IsEmpty());
}

TEST_F(TopicTablesTest, WhatItSetsIsAmongTheFacts) {
  const auto settings =
      check({.path = write("millrace.toml", "[topic.orders]\npartitions = 6\n"), .sets = {}});
  ASSERT_TRUE(settings);
  const auto fact =
      std::ranges::find(settings->facts, "topic.orders.partitions", &SettingFact::key);
  ASSERT_NE(fact, settings->facts.end());
  EXPECT_EQ(fact->value, "6");
}

TEST_F(TopicTablesTest, WhatIsUnknown) {
  EXPECT_THAT(
      problems_in("[topic.orders]\npartition = 3\n"),
      ElementsAre("millrace.toml:2:1: unknown key topic.orders.partition; nearest known: "
                  "partitions; [topic.orders] has partitions, preallocate, replication-factor, "
                  "retention.ms"));
}

TEST_F(TopicTablesTest, WhatHasTheWrongShape) {
  EXPECT_THAT(problems_in("[topic]\norders = 3\n"),
              ElementsAre("millrace.toml:2:1: topic.orders stands in the table of one topic, such "
                          "as [topic.orders]"));
  EXPECT_THAT(problems_in("[topic.orders]\npartitions = 0\n"),
              ElementsAre("millrace.toml:2:14: topic.orders.partitions: expected an integer from 1 "
                          "to 10000 (partitions), found integer 0"));
  EXPECT_THAT(problems_in("[topic.orders]\n\"retention.ms\" = \"1d\"\n"),
              ElementsAre(StartsWith("millrace.toml:2:18: topic.orders.\"retention.ms\": expected "
                                     "an integer")));
}

TEST_F(TopicTablesTest, NamesWithDotsAreQuoted) {
  EXPECT_THAT(problems_in("[topic.orders.bad]\npartitions = 3\n"),
              ElementsAre("millrace.toml:1:15: a topic's name with dots is quoted: "
                          "[topic.\"orders.bad\"]"));
  EXPECT_THAT(problems_in("[topic.orders]\nretention.ms = 1\n"),
              ElementsAre("millrace.toml:2:11: a name with dots is quoted: "
                          "topic.orders.\"retention.ms\""));
}

TEST_F(TopicTablesTest, NamesThatNoTopicOfUsersHas) {
  EXPECT_THAT(problems_in("[topic.\"a b\"]\n"),
              ElementsAre("millrace.toml:1:8: topic: \"a b\" is no name of a topic: letters, "
                          "digits, \".\", \"_\" and \"-\", at most 249"));
  EXPECT_THAT(problems_in("[topic.__consumer_offsets]\n"),
              ElementsAre("millrace.toml:1:8: topic: \"__consumer_offsets\" is the broker's own; "
                          "use another topic"));
}

}  // namespace
}  // namespace millrace::kernel
