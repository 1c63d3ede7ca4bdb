// What an aggregate has acknowledged survives: a power cut at every change of the disk, a kill at
// any moment; and what it then knows is what its log says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim_aggregates.h"

namespace millrace::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int words = 24;
const std::vector<std::string> keys = {"a", "b", "c"};

/// What was acknowledged of each key, and how many were sent.
struct Script {
  std::map<std::string, std::vector<std::string>> acknowledged;
  std::map<std::string, std::vector<std::string>> sent;
  bool ended = false;  // every word was acknowledged
};

// Until something is refused or unanswered.
void run(SimAggregates& sim, Script& script) {
  for (int n = 0; n < words; ++n) {
    const auto& key = keys[static_cast<std::size_t>(n) % keys.size()];
    const auto word = "w" + std::to_string(n);
    script.sent[key].push_back(word);
    const auto said = sim.command("journal", key, "say " + word, seconds(20));
    if (!said.well) return;
    script.acknowledged[key].push_back(word);
    EXPECT_EQ(said.words, std::to_string(script.acknowledged[key].size()));
  }
  script.ended = true;
}

std::string joined(const std::vector<std::string>& all) {
  std::string text;
  for (const auto& one : all) text += (text.empty() ? "" : " ") + one;
  return text;
}

// Nothing that was acknowledged is missing, and nothing is there that was not sent.
void check(SimAggregates& sim, const Script& script) {
  for (const auto& key : keys) {
    const auto said = sim.query("journal", key);
    ASSERT_TRUE(said.well) << said.words;
    const auto acknowledged = script.acknowledged.find(key);
    const auto sent = script.sent.find(key);
    const auto least =
        acknowledged == script.acknowledged.end() ? std::string() : joined(acknowledged->second);
    const auto most = sent == script.sent.end() ? std::string() : joined(sent->second);
    EXPECT_TRUE(said.words.starts_with(least)) << said.words << " without " << least;
    EXPECT_TRUE(most.starts_with(said.words)) << said.words << " beyond " << most;
  }
}

class PowerCutTest : public ::testing::TestWithParam<int> {};

// One part of all moments each, so that they run side by side.
constexpr int parts = 8;

TEST_P(PowerCutTest, AtEveryChangeOfTheDiskLosesNothingThatWasAcknowledged) {
  int cuts = 0;
  for (std::uint64_t at = static_cast<std::uint64_t>(GetParam());; at += parts) {
    SCOPED_TRACE("cut after change " + std::to_string(at));
    SimAggregates sim(at + 1);
    ASSERT_TRUE(sim.broker().start());
    Script script;
    sim.node().files().crash_after(at);
    run(sim, script);
    sim.broker().crash();
    ASSERT_TRUE(sim.broker().start());
    // It goes on from there, and has its topic if the power went before that was made.
    EXPECT_TRUE(sim.command("journal", "z", "say more").well);
    check(sim, script);
    ASSERT_TRUE(sim.broker().stop());
    if (script.ended || ::testing::Test::HasFailure()) break;
    ++cuts;
  }
  EXPECT_GT(cuts, 3);
}
INSTANTIATE_TEST_SUITE_P(Parts, PowerCutTest, ::testing::Range(0, parts));

class KillTest : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(KillTest, LosesNothingThatWasAcknowledged) {
  SimAggregates sim(GetParam());
  ASSERT_TRUE(sim.broker().start());
  Script script;
  // Several are under way when it dies.
  std::vector<std::pair<std::string, std::shared_ptr<std::optional<Said>>>> under_way;
  ASSERT_TRUE(sim.command("journal", "a", "say w").well);
  script.sent["a"] = script.acknowledged["a"] = {"w"};
  for (int n = 0; n < words; ++n) {
    const auto& key = keys[static_cast<std::size_t>(n) % keys.size()];
    const auto word = "w" + std::to_string(n);
    script.sent[key].push_back(word);
    under_way.emplace_back(key, sim.begin("journal", key, "say " + word));
    if (sim.world().random().one_in(3)) sim.world().run_for(microseconds(1));
    if (sim.world().random().one_in(20)) break;
  }
  sim.broker().kill();
  std::map<std::string, std::size_t> at;
  at["a"] = 1;
  for (const auto& [key, answer] : under_way) {
    const auto& word = script.sent[key][at[key]++];
    if (*answer && (*answer)->well) script.acknowledged[key].push_back(word);
  }
  ASSERT_TRUE(sim.broker().start());
  check(sim, script);
  ASSERT_TRUE(sim.broker().stop());
}
INSTANTIATE_TEST_SUITE_P(Seeds, KillTest, ::testing::Range<std::uint64_t>(1, 31));

TEST(AggregatesInSimulationTest, AnObjectThatFailsIsBackSoon) {
  SimAggregates sim(1);
  ASSERT_TRUE(sim.broker().start());
  ASSERT_TRUE(sim.command("journal", "a", "say one").well);
  EXPECT_EQ(sim.command("journal", "a", "fail").words, "UNKNOWN_SERVER_ERROR");
  EXPECT_EQ(sim.command("journal", "a", "say two").words, "2");
  EXPECT_EQ(sim.query("journal", "a").words, "one two");
  ASSERT_TRUE(sim.broker().stop());
}

TEST(AggregatesInSimulationTest, ACleanStopKeepsEverything) {
  SimAggregates sim(1);
  ASSERT_TRUE(sim.broker().start());
  Script script;
  run(sim, script);
  ASSERT_TRUE(script.ended);
  for (int life = 0; life < 3; ++life) {
    ASSERT_TRUE(sim.broker().stop());
    ASSERT_TRUE(sim.broker().start());
    check(sim, script);
  }
  ASSERT_TRUE(sim.broker().stop());
}

}  // namespace
}  // namespace millrace::testing
