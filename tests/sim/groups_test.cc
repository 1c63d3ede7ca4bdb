// Many groups of both protocols on a simulated broker that is killed, loses its power and its
// connections, while members come, go and die: in one generation or epoch a partition has one
// owner, no commit that was acknowledged is lost, and whatever happened the groups settle.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim_broker.h"
#include "sim_client.h"
#include "sim_members.h"

namespace millrace::testing {
namespace {

using std::chrono::milliseconds;

constexpr int groups = 6;  // of each protocol half
constexpr std::size_t members_max = 24;
constexpr int steps = 60;

std::vector<std::string> sets() {
  return {"operators.plugins=[\"consumer_groups\"]", "operators.snapshot_events=20",
          // What is acknowledged is on stable storage.
          R"(defaults."log.flush.interval.messages"=1)",
          R"(defaults."offsets.topic.num.partitions"=3)",
          R"(defaults."group.min.session.timeout.ms"=1000)",
          R"(defaults."group.initial.rebalance.delay.ms"=500)",
          R"(defaults."group.consumer.min.session.timeout.ms"=1000)",
          R"(defaults."group.consumer.session.timeout.ms"=10000)"};
}

class Churn {
  template <class F>
  auto on_client(F make) {
    return world_.run(*client_.shards()[0], std::move(make));
  }

 public:
  explicit Churn(std::uint64_t seed) : world_(seed), broker_(world_, server_, sets()) {}

  SimTrace run() {
    ok(broker_.start(), "start");
    ok(on_client([this] { return make_topic(client_.network(), topic_); }), "topic");
    for (int group = 0; group < groups; ++group) add_member(group);
    for (int step = 0; step < steps; ++step) {
      something_happens();
      world_.run_for(milliseconds(world_.random().below(2'000)));
    }
    world_.heal();
    for (int group = 0; group < groups; ++group) add_member(group);
    EXPECT_TRUE(comes([this] { return settled(); })) << owners();
    for (auto& member : members_) member->die();
    EXPECT_TRUE(comes([this] { return all_ended(); }));
    check_commits();
    EXPECT_THAT(seen_.faults(), ::testing::IsEmpty());
    EXPECT_GT(seen_.commits(), 0U);
    ok(broker_.stop(), "stop");
    EXPECT_THAT(server_.reports(), ::testing::IsEmpty());
    return world_.trace();
  }

 private:
  static void ok(const Result<>& result, const char* what) {
    EXPECT_TRUE(result) << what << ": " << to_string(result.error());
  }
  static Task<> make_topic(Network& network, SimTopic& topic) {
    MR_CO_TRY(auto client, co_await connect_to(network, "b1"));
    MR_CO_CHECK(co_await create_topic(*client, topic.name, topic.partitions));
    auto asking = topic_id(*client, topic.name);
    MR_CO_TRY(topic.id, co_await std::move(asking));
    co_return {};
  }
  static std::string name_of(int group) { return "g" + std::to_string(group); }

  void add_member(int group) {
    const SimMember::Parts parts{client_, world_.random(), seen_, topic_};
    const auto name = "m" + std::to_string(++made_);
    auto member = group % 2 == 0 ? make_classic_member(parts, name_of(group), name)
                                 : make_consumer_member(parts, name_of(group), name);
    auto& shard = *client_.shards()[0];
    shard.post([&shard, alive = member.get()] { spawn(shard, alive->live(), "member"); });
    members_.push_back(std::move(member));
  }

  /// Looks once in a while: there is much to look at.
  template <class F>
  bool comes(F condition) {
    for (int look = 0; look < 360 && !condition(); ++look) world_.run_for(milliseconds(500));
    return condition();
  }

  SimMember& somebody() { return *members_[world_.random().below(members_.size())]; }

  void something_happens() {
    switch (world_.random().below(16)) {
      case 0: broker_.kill(); return ok(broker_.start(), "start after a kill");
      case 1: broker_.crash(); return ok(broker_.start(), "start after a power cut");
      case 2: return world_.cut(server_, client_);
      case 3: return world_.block(server_, client_);
      case 4:
      case 5: return world_.heal();
      case 6:
      case 7: return somebody().die();
      case 8: return somebody().leave();
      case 9:
      case 10:
      case 11:
        if (alive() < members_max) add_member(static_cast<int>(world_.random().below(groups)));
        return;
      default: return;
    }
  }

  std::size_t alive() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(members_, [](const auto& member) { return !member->has_ended(); }));
  }
  std::map<std::string, std::multiset<std::int32_t>> owned() const {
    std::map<std::string, std::multiset<std::int32_t>> by_group;
    for (const auto& member : members_) {
      if (member->has_ended()) continue;
      by_group[member->group()].insert(member->owned().begin(), member->owned().end());
    }
    return by_group;
  }
  bool settled() const {
    const auto by_group = owned();
    return by_group.size() == groups && std::ranges::all_of(by_group, [this](const auto& of) {
             return std::set(of.second.begin(), of.second.end()).size() ==
                        static_cast<std::size_t>(topic_.partitions) &&
                    of.second.size() == static_cast<std::size_t>(topic_.partitions);
           });
  }
  std::string owners() const {
    std::string text;
    for (const auto& [group, partitions] : owned()) {
      text += group + ":";
      for (const auto partition : partitions) text += " " + std::to_string(partition);
      text += "; ";
    }
    return text;
  }
  bool all_ended() const {
    return std::ranges::all_of(members_, [](const auto& member) { return member->has_ended(); });
  }

  void check_commits() {
    for (int group = 0; group < groups; ++group) {
      const auto name = name_of(group);
      auto ask = [this, name] { return committed_offsets(client_.network(), name); };
      auto offsets = on_client(ask);
      ASSERT_TRUE(offsets) << to_string(offsets.error());
      for (std::int32_t partition = 0; partition < topic_.partitions; ++partition) {
        const auto found = offsets->find(partition);
        seen_.check(name, partition, found == offsets->end() ? -1 : found->second);
      }
    }
  }

  SimWorld world_;
  SimEnvironment& server_ = world_.add_node("b1", 2);
  SimEnvironment& client_ = world_.add_node("c1");
  SimBroker broker_;
  GroupsSeen seen_;
  SimTopic topic_{"orders", {}, 4};
  std::vector<std::unique_ptr<SimMember>> members_;
  int made_ = 0;
};

/// One seed each: --gtest_filter='*/7' replays that run exactly.
class SimGroupsTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(SimGroupsTest, HaveOneOwnerForEachPartitionAndLoseNoCommit) { Churn(GetParam()).run(); }

/// MILLRACE_CHURN_SEEDS: so many instead of a few.
unsigned seeds() {
  const char* wanted = std::getenv("MILLRACE_CHURN_SEEDS");
  return wanted ? static_cast<unsigned>(std::strtoul(wanted, nullptr, 10)) : 50;
}
INSTANTIATE_TEST_SUITE_P(Seeds, SimGroupsTest, ::testing::Range(1U, seeds() + 1));

TEST(SimGroupsReplayTest, TheSameSeedIsTheSameRun) {
  const auto first = Churn(3).run();
  EXPECT_EQ(first_difference(first, Churn(3).run()), "");
}

}  // namespace
}  // namespace millrace::testing
