// What metrics say of groups.
#include "bench.h"

namespace millrace::consumer_groups::testing {
namespace {

class MonitorTest : public Bench {
 public:
  std::int64_t groups(const std::string& state) {
    return metrics.gauge("millrace_groups", "", {{"protocol", "classic"}, {"state", state}})
        .value();
  }
  std::int64_t members() {
    return metrics.gauge("millrace_group_members", "", {{"protocol", "classic"}}).value();
  }
  std::uint64_t rebalances() {
    return metrics.counter("millrace_group_rebalances_total", "", {{"protocol", "classic"}})
        .value();
  }
  const Histogram& rebalance_seconds() {
    return metrics.histogram("millrace_group_rebalance_seconds", "", {{"protocol", "classic"}});
  }
  std::uint64_t commits() { return metrics.counter("millrace_group_commits_total", "").value(); }
};

TEST_F(MonitorTest, GroupsAreCountedByTheirState) {
  Client a{.client_id = "a"};
  const auto joining = begin_join(a);
  EXPECT_EQ(groups("PreparingRebalance"), 1);
  EXPECT_EQ(members(), 1);
  EXPECT_EQ(rebalances(), 1U);
  driver.advance(3s);
  (void)end_join(a, joining);
  EXPECT_EQ(groups("PreparingRebalance"), 0);
  EXPECT_EQ(groups("CompletingRebalance"), 1);
  sync_all({&a});
  EXPECT_EQ(groups("CompletingRebalance"), 0);
  EXPECT_EQ(groups("Stable"), 1);
  EXPECT_EQ(rebalance_seconds().sum(), 3s);

  Client alone{.group = "offsets"};
  EXPECT_EQ(commit_error(alone, 1), ErrorCode::none);
  EXPECT_EQ(commit_error(a, 1), ErrorCode::none);
  EXPECT_EQ(groups("Empty"), 1);
  EXPECT_EQ(commits(), 2U);

  driver.advance(20s);  // it has died
  EXPECT_EQ(members(), 0);
  EXPECT_EQ(groups("Stable"), 0);
  EXPECT_EQ(groups("Empty"), 2);
  EXPECT_EQ(ask<GroupDeleted>("g", Remove{}).error, ErrorCode::none);
  EXPECT_EQ(ask<GroupDeleted>("offsets", Remove{}).error, ErrorCode::none);
  EXPECT_EQ(groups("Empty"), 0);
}

TEST_F(MonitorTest, ALoadCountsAnewAndTheEndLeavesNothing) {
  Client a{.client_id = "a"};
  Client b{.client_id = "b"};
  make_stable({&a, &b});
  ASSERT_TRUE(driver.reload());
  EXPECT_EQ(groups("Stable"), 1);
  EXPECT_EQ(members(), 2);
  EXPECT_EQ(rebalances(), 1U);  // what is replayed has been counted
  driver.unload();
  EXPECT_EQ(groups("Stable"), 0);
  EXPECT_EQ(members(), 0);
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
