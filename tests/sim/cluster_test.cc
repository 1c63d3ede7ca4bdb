// Brokers on one simulated coordination, under a load that waits for all replicas: whatever
// happens, what was acknowledged is there once and in order, what was shown stays, replicas have
// the same bytes, and the cluster heals.
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/testing/sim_random.h>

#include "sim_cluster.h"

namespace millrace::testing {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::size_t brokers = 3;
constexpr std::size_t faults_in_a_walk = 4;

void ok(const Result<>& result, const std::string& what) {
  ASSERT_TRUE(result) << what << ": " << to_string(result.error());
}

// Half of what happens, happens to the leader.
std::size_t victim_in(SimCluster& cluster) {
  auto& random = cluster.world().random();
  return random.one_in(2) ? cluster.leader() : random.below(cluster.size());
}

/// MILLRACE_CLUSTER_SEEDS: so many instead of a few.
unsigned seeds() {
  const char* wanted = std::getenv("MILLRACE_CLUSTER_SEEDS");
  return wanted ? static_cast<unsigned>(std::strtoul(wanted, nullptr, 10)) : 50;
}

/// MILLRACE_CLUSTER_FAULTS: what each walk begins with, by name: "slow_disk,sleeps".
std::vector<SimFault> first_faults() {
  std::vector<SimFault> faults;
  const char* wanted = std::getenv("MILLRACE_CLUSTER_FAULTS");
  std::istringstream names(wanted ? wanted : "");
  for (std::string name; std::getline(names, name, ',');) {
    std::size_t at = 0;
    while (at < sim_faults && name != name_of(static_cast<SimFault>(at))) ++at;
    EXPECT_LT(at, sim_faults) << "no fault is called " << name;
    if (at < sim_faults) faults.push_back(static_cast<SimFault>(at));
  }
  return faults;
}

// ---- several faults, one after the other ----

void walk(SimCluster& cluster, std::vector<SimFault> first = {}) {
  ok(cluster.start(), "start");
  std::string steps;
  for (std::size_t n = 0; n < faults_in_a_walk && !::testing::Test::HasFailure(); ++n) {
    const auto by_chance = static_cast<SimFault>(cluster.world().random().below(sim_faults));
    const auto fault = n < first.size() ? first[n] : by_chance;
    const auto victim = victim_in(cluster);
    steps += std::string(name_of(fault)) + " of b" + std::to_string(victim + 1) + "; ";
    ok(cluster.happens(fault, victim), steps);
    ok(cluster.heals(), "after " + steps);
  }
  EXPECT_THAT(cluster.verdict(), IsEmpty()) << "after " << steps;
}

/// One seed each: --gtest_filter='*/7' runs that one again, the same to the last byte.
class SimClusterWalkTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(SimClusterWalkTest, NothingIsLostOrRepeatedAndItHeals) {
  SimCluster cluster(GetParam(), brokers);
  walk(cluster, first_faults());
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimClusterWalkTest, ::testing::Range(1U, seeds() + 1));

// What is allocated while it lives lies elsewhere, and in another order, than before: in the gaps
// between its blocks.
class OtherAddresses {
 public:
  OtherAddresses() {
    SimRandom random(2);
    std::vector<std::unique_ptr<std::byte[]>> gaps;
    for (int n = 0; n < 10'000; ++n) {
      auto block = std::make_unique<std::byte[]>(16 + random.below(4096));
      (random.one_in(2) ? kept_ : gaps).push_back(std::move(block));
    }
    while (!gaps.empty()) {
      std::swap(gaps[random.below(gaps.size())], gaps.back());
      gaps.pop_back();
    }
  }

 private:
  std::vector<std::unique_ptr<std::byte[]>> kept_;
};

// Of two runs in one process; with faults that end connections.
TEST(SimClusterTest, AWalkOfOneSeedIsTheSameEachTimeWhereverItsObjectsLie) {
  const auto trace = [] {
    SimCluster cluster(1, brokers);
    walk(cluster, {SimFault::restart_all, SimFault::kill_two, SimFault::session_ends});
    return cluster.world().trace();
  };
  const auto first = trace();
  const OtherAddresses others;
  EXPECT_EQ(first_difference(first, trace()), "");
}

// ---- each fault for itself, to the leader ----

class SimClusterFaultTest : public ::testing::TestWithParam<std::size_t> {};

TEST_P(SimClusterFaultTest, OfTheLeaderIsSurvived) {
  const auto fault = static_cast<SimFault>(GetParam());
  SimCluster cluster(1000 + GetParam(), brokers);
  ok(cluster.start(), "start");
  ok(cluster.happens(fault, cluster.leader()), name_of(fault));
  ok(cluster.heals(), "after");
  EXPECT_THAT(cluster.verdict(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Each, SimClusterFaultTest, ::testing::Range(std::size_t{0}, sim_faults),
                         [](const auto& info) {
                           return name_of(static_cast<SimFault>(info.param));
                         });

// Whoever is elected next finds everybody there: that one was gone must be known all the same.
TEST(SimClusterTest, AControllerThatIsBackAtOnceWithAnEmptyDiskDoesNotLead) {
  SimCluster cluster(11, brokers);
  ok(cluster.start(), "start");
  for (int n = 0; n < 6 && cluster.leader() != cluster.controller(); ++n) {
    ok(cluster.happens(SimFault::restart, cluster.leader()), "another leader");
    ok(cluster.heals(), "meanwhile");
  }
  const auto victim = cluster.leader();
  ASSERT_EQ(victim, cluster.controller());
  cluster.broker(victim).kill();
  ok(cluster.wipe(victim), "wipe");
  ok(cluster.broker(victim).start(), "start again");
  ok(cluster.heals(), "in the end");
  EXPECT_THAT(cluster.verdict(), IsEmpty());
}

// ---- L11: a power cut of one and pauses of others, where a record is on stable storage first ----

class SimClusterOfFiveTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(SimClusterOfFiveTest, L11_APowerCutAndPausesLoseNothing) {
  SimCluster cluster(
      GetParam(), 5,
      {R"(defaults."log.flush.interval.messages"=1)", R"(defaults."min.insync.replicas"=3)"});
  ok(cluster.start(), "start");
  const auto leader = cluster.leader();
  const auto after = [&](std::size_t n) { return (leader + n) % cluster.size(); };
  const auto pause = [&](std::size_t broker) {
    cluster.coordination().cut_off(cluster.node(broker));
    for (std::size_t at = 0; at < cluster.size(); ++at) {
      if (at != broker) cluster.world().block(cluster.node(broker), cluster.node(at));
    }
  };
  const auto go_on = [&](std::size_t broker) {
    cluster.coordination().reach(cluster.node(broker));
    cluster.world().heal();
  };
  pause(after(1));
  pause(after(2));
  EXPECT_TRUE(cluster.goes_on(50, minutes(1))) << "three of five are enough";
  cluster.broker(leader).crash();
  go_on(after(1));
  go_on(after(2));
  pause(after(3));
  pause(after(4));
  cluster.world().run_for(seconds(10));
  go_on(after(3));
  go_on(after(4));
  ok(cluster.broker(leader).start(), "start again");
  ok(cluster.heals(), "in the end");
  EXPECT_THAT(cluster.verdict(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimClusterOfFiveTest, ::testing::Range(1U, 4U));

// ---- the checker finds what is broken ----

std::vector<std::string> verdict_of_broken(const std::string& set, SimFault fault) {
  SimCluster cluster(7, brokers,
                     {std::string("plugins.path=[\"") + MILLRACE_BROKEN_DIR + "\"]", set});
  ok(cluster.start(), "start");
  static_cast<void>(cluster.goes_on(300, minutes(1)));
  // It may be over before anybody has noticed.
  for (int n = 0; n < 3; ++n) {
    static_cast<void>(cluster.happens(fault, cluster.leader()));
    static_cast<void>(cluster.heals());
  }
  return cluster.verdict();
}

TEST(SimClusterCheckerTest, FindsABrokerThatAcknowledgesBeforeReplicasHaveWritten) {
  EXPECT_THAT(verdict_of_broken("transport.kafka.plugin=early", SimFault::cut_with_clients),
              Not(IsEmpty()));
}

TEST(SimClusterCheckerTest, FindsABrokerThatReusesOffsets) {
  EXPECT_THAT(verdict_of_broken("storage.plugin=reusing", SimFault::clock_jumps), Not(IsEmpty()));
}

}  // namespace
}  // namespace millrace::testing
