// Another version of an aggregate takes over while the first one runs.
#include <algorithm>
#include <map>
#include <optional>

#include <gmock/gmock.h>

#include "aggregate_fixture.h"

namespace millrace::kernel {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

/// Versions by their file.
class Shelf final : public AggregateSource {
 public:
  Task<AggregateVersion> load(AggregateDeclaration running, std::string plugin,
                              std::string file) override {
    EXPECT_EQ(running.name, "ledger");
    EXPECT_EQ(plugin, "org.example.ledger");
    const auto found = versions.find(file);
    if (found == versions.end()) co_return Error{Errc::invalid_argument, file + ": is not that"};
    co_return AggregateVersion{found->second, "2", file};
  }
  std::map<std::string, std::shared_ptr<AggregateFactory>> versions;
};

class AggregateReplaceTest : public AggregateTest {
 protected:
  AggregateReplaceTest() {
    next_ = std::make_shared<LedgerFactory>(next_script_, declaration_);
    shelf_.versions["/next.so"] = next_;
    router_->use(shelf_);
  }

  using Replaced = std::shared_ptr<std::optional<Result<>>>;
  Replaced begin_replace(std::string file = "/next.so", std::string name = "ledger") {
    auto result = std::make_shared<std::optional<Result<>>>();
    auto& home = *node_.shards()[0];
    home.post([this, &home, result, file, name] {
      auto body = [](Task<> replacing, Replaced into) -> Task<> {
        auto replaced = co_await std::move(replacing);
        into->emplace(std::move(replaced));
        co_return {};
      };
      spawn(home, body(router_->replace(name, file), result), "replace");
    });
    return result;
  }
  Result<> replace(std::string file = "/next.so", std::string name = "ledger") {
    const auto result = begin_replace(std::move(file), std::move(name));
    EXPECT_TRUE(world_.run_until([&result] { return result->has_value(); }, seconds(60)));
    return *result ? **result : Result<>(Error{Errc::timed_out, "it does not end"});
  }
  AggregateFact fact() {
    auto facts = on_shard(0, [this] { return router_->list(); });
    EXPECT_TRUE(facts && facts->size() == 1);
    return facts->at(0);
  }

  LedgerScript next_script_;
  std::shared_ptr<LedgerFactory> next_;
  Shelf shelf_;
};

TEST_F(AggregateReplaceTest, GoesOnFromTheSnapshotAndTheLog) {
  reopen({.snapshot_events = 10, .snapshot_bytes = 1UL << 40});
  router_->use(shelf_);
  for (int n = 0; n < 15; ++n) ask("a", put(std::to_string(n)));
  settle();
  const auto made = script_.loads;
  const auto replaced = replace();
  ASSERT_TRUE(replaced) << replaced.error().detail;
  EXPECT_EQ(next_script_.restored, 1);
  EXPECT_EQ(next_script_.replayed, 5);
  EXPECT_EQ(next_script_.loads, declaration_.partitions);
  EXPECT_EQ(text_of(query("a")), "14");
  EXPECT_EQ(text_of(ask("a", put("more"))), "more");
  EXPECT_EQ(next_script_.replayed, 5);  // decided by itself
  // And whatever is loaded from now on is of that version.
  ask("a", [](Ledger&, Command&, Context&) { throw std::runtime_error("oops"); });
  world_.run_for(seconds(1));
  EXPECT_EQ(text_of(query("a")), "more");
  EXPECT_EQ(script_.loads, made);
  const auto shown = fact();
  EXPECT_EQ(shown.version, "2");
  EXPECT_EQ(shown.path, "/next.so");
  EXPECT_EQ(shown.serving, declaration_.partitions);
}

TEST_F(AggregateReplaceTest, BeforeItsTopicIsThereTheNextIsOfThatVersion) {
  EXPECT_EQ(fact().partitions, 0);
  ASSERT_TRUE(replace());
  EXPECT_EQ(text_of(ask("a", put("one"))), "one");
  EXPECT_EQ(script_.loads, 0);
  EXPECT_EQ(next_script_.loads, declaration_.partitions);
}

TEST_F(AggregateReplaceTest, WhatIsAnsweredLeavesAndWhoWaitsForLaterAsksAgain) {
  ask("a", put("one"));
  const auto parked = begin("a", wait());
  hold(partition_of("a"), true);
  const auto answered = begin("a", put("two"), 1);
  settle();
  const auto replacing = begin_replace();
  world_.run_for(seconds(2));
  EXPECT_FALSE(answered->has_value());
  EXPECT_FALSE(replacing->has_value());
  // The one that runs goes on meanwhile.
  const auto third = begin("a", put("three"));
  world_.run_for(seconds(1));
  hold(partition_of("a"), false);
  ASSERT_TRUE(comes(answered));
  ASSERT_TRUE(comes(third));
  ASSERT_TRUE(comes(parked));
  EXPECT_EQ(text_of(**answered), "two");
  EXPECT_EQ(text_of(**third), "three");
  EXPECT_EQ(text_of(**parked), "COORDINATOR_LOAD_IN_PROGRESS");
  ASSERT_TRUE(world_.run_until([&] { return replacing->has_value(); }, seconds(10)));
  EXPECT_TRUE(**replacing);
  EXPECT_EQ(text_of(query("a")), "three");
}

TEST_F(AggregateReplaceTest, WhileEventsDoNotReachAllReplicasItIsNotReplaced) {
  ask("a", put("one"));
  hold(partition_of("a"), true);
  const auto answered = begin("a", put("two"));
  settle();
  const auto refused = replace();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::conflict);
  EXPECT_THAT(refused.error().detail, HasSubstr("not on all replicas yet"));
  EXPECT_FALSE(answered->has_value());
  hold(partition_of("a"), false);
  ASSERT_TRUE(comes(answered));
  EXPECT_EQ(text_of(**answered), "two");
  EXPECT_EQ(fact().path, "");
}

TEST_F(AggregateReplaceTest, WhoAsksAllTheTimeIsAnsweredOnceAndNothingIsLost) {
  ask("n", put("0"));
  std::vector<Later> answers;
  const auto replacing = begin_replace();
  for (int n = 1; n <= 50; ++n) {
    answers.push_back(begin(
        "n",
        [](Ledger& ledger, Command& command, Context& context) {
          const auto next = std::to_string(std::stoi(ledger.texts["n"]) + 1);
          context.emit(as_bytes(command.key), as_bytes(next));
          context.answer(command.reply_to, std::make_unique<Text>(next));
        },
        static_cast<std::size_t>(n % 2)));
    world_.run_for(std::chrono::microseconds(20));
  }
  std::vector<int> said;
  for (const auto& answer : answers) {
    ASSERT_TRUE(comes(answer));
    ASSERT_EQ((*answer)->error, ErrorCode::none) << (*answer)->detail;
    said.push_back(std::stoi(text_of(**answer)));
  }
  std::ranges::sort(said);
  for (int n = 1; n <= 50; ++n) EXPECT_EQ(said[static_cast<std::size_t>(n - 1)], n);
  EXPECT_EQ(text_of(query("n")), "50");
  ASSERT_TRUE(replacing->has_value());
  EXPECT_TRUE(**replacing);
  EXPECT_GT(next_script_.replayed, 0);
}

TEST_F(AggregateReplaceTest, OneThatCannotReadTheLogIsRefusedAndTheOldOneGoesOn) {
  ask("a", put("one"));
  const auto parked = begin("a", wait());
  settle();
  next_script_.before_evolve = [](const RecordView&) -> Result<> {
    return Error{Errc::corrupt, "what is this"};
  };
  const auto refused = replace();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  EXPECT_THAT(refused.error().detail,
              ::testing::AllOf(HasSubstr("/next.so: "), HasSubstr("__ledger-"),
                               HasSubstr("event at offset 0: what is this")));
  EXPECT_FALSE(parked->has_value());
  ask("a", [](Ledger& ledger, Command& command, Context& context) {
    for (const auto to : ledger.waiting) context.answer(to, std::make_unique<Text>("still here"));
    context.answer(command.reply_to, nullptr);
  });
  ASSERT_TRUE(comes(parked));
  EXPECT_EQ(text_of(**parked), "still here");
  EXPECT_EQ(script_.loads, declaration_.partitions);
}

TEST_F(AggregateReplaceTest, WhatCannotBeLoadedIsMendedByIt) {
  ask("a", put("bad"));
  script_.before_evolve = [](const RecordView&) -> Result<> { return Error{Errc::corrupt, "bad"}; };
  ask("a", [](Ledger&, Command&, Context&) { throw std::runtime_error("oops"); });
  world_.run_for(seconds(5));
  EXPECT_EQ(text_of(query("a")), "COORDINATOR_NOT_AVAILABLE");
  EXPECT_EQ(fact().serving, declaration_.partitions - 1);
  ASSERT_TRUE(replace());
  EXPECT_EQ(text_of(query("a")), "bad");
  world_.run_for(seconds(60));  // the loads that were still to come are in vain
  EXPECT_EQ(next_script_.loads, declaration_.partitions);
  EXPECT_EQ(fact().serving, declaration_.partitions);
}

TEST_F(AggregateReplaceTest, ALostPartitionEndsAReplacement) {
  ask("a", put("one"));
  hold(partition_of("a"), true);
  const auto answered = begin("a", put("two"));
  settle();
  const auto replacing = begin_replace();
  world_.run_for(seconds(1));
  erase_topic(declaration_.topic);
  ASSERT_TRUE(world_.run_until([&] { return replacing->has_value(); }, seconds(10)));
  EXPECT_TRUE(**replacing);
  EXPECT_EQ(text_of(**answered), "NOT_COORDINATOR");
  EXPECT_EQ(text_of(ask("b", put("other"))), "other");
}

TEST_F(AggregateReplaceTest, AStopDuringAReplacementEndsBoth) {
  ask("a", put("one"));
  hold(partition_of("a"), true);
  begin("a", put("two"));
  settle();
  const auto replacing = begin_replace();
  world_.run_for(seconds(1));
  close();
  EXPECT_TRUE(replacing->has_value());
}

TEST_F(AggregateReplaceTest, WhatIsNotThereIsToldSo) {
  const auto unknown = replace("/next.so", "leger");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::not_found);
  EXPECT_EQ(unknown.error().detail,
            "there is no aggregate leger; nearest known: ledger; running are ledger");
  const auto unfit = replace("/other.so");
  ASSERT_FALSE(unfit);
  EXPECT_EQ(unfit.error().detail, "/other.so: is not that");
}

TEST_F(AggregateReplaceTest, TheVersionBeforeIsLetGo) {
  ask("a", put("one"));
  ASSERT_TRUE(replace());
  const std::weak_ptr<AggregateFactory> before = next_;
  shelf_.versions["/third.so"] = std::make_shared<LedgerFactory>(script_, declaration_);
  shelf_.versions.erase("/next.so");
  next_ = nullptr;
  EXPECT_FALSE(before.expired());
  ASSERT_TRUE(replace("/third.so"));
  EXPECT_TRUE(before.expired());
  EXPECT_EQ(text_of(query("a")), "one");
}

}  // namespace
}  // namespace millrace::kernel
