// A replica that was not in sync is elected where the topic allows it: what that costs is told by
// offset range, by the broker that leads and by the one whose records go.
#include "two_brokers.h"

namespace millrace::testing {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class SimUncleanTest : public TwoBrokers {
 protected:
  SimUncleanTest()
      : TwoBrokers({R"(defaults."unclean.leader.election.enable"=true)",
                    R"(defaults."replica.high.watermark.checkpoint.interval.ms"=500)"}) {}
};

TEST_F(SimUncleanTest, WhatItCostsIsToldByOffsets) {
  for (const std::size_t at : {0, 1}) start(at);
  create();
  const auto first = leader(0);
  ASSERT_LT(first, 2U);
  const auto other = 1 - first;
  produce(first, 10);
  world_.run_for(seconds(1));
  brokers_[other]->kill();
  produce(first, 7);  // acknowledged once the other one is out of sync
  world_.run_for(seconds(2));
  brokers_[first]->kill();
  start(other);
  ASSERT_TRUE(world_.run_until([&] { return leader(other) == other; }, minutes(1)));
  EXPECT_THAT(brokers_[other]->log().lines(),
              Contains(AllOf(HasSubstr("elected as leader without being in sync"),
                             HasSubstr("orders-0"), HasSubstr("from=10"))));
  produce(other, 1);
  start(first);
  EXPECT_TRUE(world_.run_until(
      [&] {
        const auto& lines = brokers_[first]->log().lines();
        return std::ranges::any_of(lines, [](const std::string& line) {
          return line.contains("replicated records are lost") && line.contains("orders-0") &&
                 line.contains("from=10") && line.contains("to=16") && line.contains("records=7");
        });
      },
      minutes(1)));
}

}  // namespace
}  // namespace millrace::testing
