#include <ctime>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer.h"
#include "plugins/operators/consumer_groups/consumer/regex.h"

namespace millrace::consumer_groups::testing {
namespace {

using ::testing::ElementsAre;

class RegexTest : public ConsumerBench {
 public:
  std::size_t regex_events() const {
    std::size_t count = 0;
    for (const auto& record : driver.log()) {
      count += *kind_of(*record.key) == RecordKind::consumer_group_regular_expression ? 1U : 0U;
    }
    return count;
  }
};

TEST_F(RegexTest, MatchesWholeNames) {
  EXPECT_THAT(*matching_topics("o.*", driver.cluster()), ElementsAre("orders"));
  EXPECT_THAT(*matching_topics("rder", driver.cluster()), ElementsAre());
  EXPECT_THAT(*matching_topics(".*s", driver.cluster()), ElementsAre("bills", "orders"));
  EXPECT_FALSE(check_regex("("));
  EXPECT_FALSE(check_regex("a{1000}{1000}")) << "too large";
  EXPECT_FALSE(check_regex("(?=a)")) << "is not of RE2";
  EXPECT_FALSE(check_regex("(.*){900}b")) << "each byte of a name would cost thousands of steps";
}

TEST_F(RegexTest, AnExpressionOfManyPartsDoesNotHoldTheShardUp) {
  for (int number = 0; number < 1000; ++number) {
    driver.cluster().put(std::string(200, 'a') + std::to_string(number), 1);
  }
  const auto began = std::clock();
  EXPECT_THAT(*matching_topics("(.*){150}b", driver.cluster()), ElementsAre());
  EXPECT_LT(std::clock() - began, CLOCKS_PER_SEC / 4) << "a plain RE2 takes over a second";
}

TEST_F(RegexTest, AMemberReadsWhatMatches) {
  Consumer a{.id = "a", .regex = ".*s"};
  EXPECT_EQ(join(a).error, ErrorCode::none);
  EXPECT_EQ(a.assigned.size(), 6U);
  EXPECT_EQ(described().members.front().subscribed_regex, ".*s");
  EXPECT_EQ(regex_events(), 1U);
}

TEST_F(RegexTest, WhatIsNoExpressionIsRefused) {
  Consumer a{.id = "a", .regex = "("};
  const auto answer = join(a);
  EXPECT_EQ(answer.error, ErrorCode::invalid_regular_expression);
  EXPECT_THAT(answer.message, ::testing::HasSubstr("("));
  EXPECT_EQ(events(), 0U);
}

TEST_F(RegexTest, NewTopicsAreFoundAfterAWhile) {
  Consumer a{.id = "a", .regex = "o.*"};
  join(a);
  converge({&a});
  driver.cluster().put("offers", 3);
  driver.cluster_changed();
  driver.advance(11s);
  converge({&a});
  EXPECT_EQ(a.owned.size(), 7U);
  driver.cluster().remove("orders");
  driver.cluster_changed();
  driver.advance(11s);
  converge({&a});
  EXPECT_EQ(a.owned.size(), 3U);
}

TEST_F(RegexTest, TopicsThatDoNotMatchWriteNothing) {
  Consumer a{.id = "a", .regex = "o.*"};
  join(a);
  converge({&a});
  driver.cluster().put("bills", 5);
  driver.cluster_changed();
  const auto before = events();
  for (int i = 0; i < 200; ++i) {
    driver.advance(5s);
    beat(a);
  }
  EXPECT_EQ(events(), before);
}

TEST_F(RegexTest, AnExpressionEndsWithItsLastSubscriber) {
  Consumer a{.id = "a", .regex = "o.*"};
  Consumer b{.id = "b", .regex = "o.*"};
  Consumer c{.id = "c"};
  join(a);
  join(b);
  join(c);
  converge({&a, &b, &c});
  EXPECT_EQ(regex_events(), 1U) << "one for both";
  leave(a);
  EXPECT_EQ(regex_events(), 1U);
  // The other changes its mind.
  ConsumerHeartbeat request{.group = "g", .member_id = "b", .member_epoch = b.epoch};
  request.subscribed_regex = "";
  request.subscribed_names = std::vector<std::string>{"bills"};
  EXPECT_EQ(send(request).error, ErrorCode::none);
  EXPECT_EQ(regex_events(), 2U);
}

TEST_F(RegexTest, IsKeptOverAReload) {
  Consumer a{.id = "a", .regex = ".*s"};
  join(a);
  converge({&a});
  ASSERT_TRUE(driver.reload());
  const auto before = events();
  converge({&a});
  EXPECT_EQ(events(), before);
  EXPECT_EQ(a.owned.size(), 6U);
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
