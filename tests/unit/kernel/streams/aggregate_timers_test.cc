// Timers and effects of aggregates.
#include <gmock/gmock.h>

#include "aggregate_fixture.h"

namespace millrace::kernel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class AggregateTimersTest : public AggregateTest {
 protected:
  AggregateTimersTest() {
    began_ = world_.now();
    script_.timer = [this](Ledger&, std::string_view name, Context&) {
      const auto since = std::chrono::duration_cast<seconds>(world_.now() - began_);
      rung_.push_back(std::string(name) + "@" + std::to_string(since.count()));
    };
    ask("a", put("one"));
    settle();
    began_ = world_.now();
  }
  /// Only sets timers.
  static Body timers(std::function<void(Context&)> what) {
    return [what](Ledger&, Command& command, Context& context) {
      what(context);
      context.answer(command.reply_to, nullptr);
    };
  }

  MonoTime began_;
  std::vector<std::string> rung_;
};

TEST_F(AggregateTimersTest, RingOnceAtTheirTime) {
  ask("a", timers([](Context& context) {
        context.set_timer("late", seconds(20));
        context.set_timer("soon", seconds(5));
        context.set_timer("never", seconds(6));
        context.set_timer("moved", seconds(1));
        context.set_timer("moved", seconds(30));
      }));
  ask("a", timers([](Context& context) {
        context.cancel_timer("never");
        context.cancel_timer("unknown");
      }));
  world_.run_for(seconds(100));
  EXPECT_THAT(rung_, ElementsAre("soon@5", "late@20", "moved@30"));
}

TEST_F(AggregateTimersTest, MayBeSetAnewWhereTheyRing) {
  int left = 3;
  script_.timer = [this, &left](Ledger&, std::string_view name, Context& context) {
    rung_.emplace_back(name);
    if (--left > 0) context.set_timer(name, seconds(1));
  };
  ask("a", timers([](Context& context) { context.set_timer("tick", seconds(1)); }));
  world_.run_for(seconds(10));
  EXPECT_THAT(rung_, ElementsAre("tick", "tick", "tick"));
}

TEST_F(AggregateTimersTest, AreGoneWithTheirObject) {
  ask("a", timers([](Context& context) { context.set_timer("never", seconds(5)); }));
  ask("a", [](Ledger&, Command&, Context&) { throw std::runtime_error("oops"); });
  world_.run_for(seconds(10));
  EXPECT_THAT(rung_, IsEmpty());
}

TEST_F(AggregateTimersTest, AreSetAnewWhenItIsLoaded) {
  script_.loaded = [](Ledger&, Context& context) { context.set_timer("again", seconds(5)); };
  ask("a", [](Ledger&, Command&, Context&) { throw std::runtime_error("oops"); });
  world_.run_for(seconds(10));
  EXPECT_THAT(rung_, ElementsAre("again@5"));
}

TEST_F(AggregateTimersTest, RingAgainWhenWhatTheyDecideIsNotAppended) {
  const auto partition = partition_at(partition_of("a"));
  const auto good = partition->config();
  auto bad = good;
  bad.min_insync_replicas = 2;
  script_.timer = [this](Ledger&, std::string_view name, Context& context) {
    rung_.emplace_back(name);
    context.emit(as_bytes("a"), as_bytes("by timer"));
  };
  ask("a", timers([](Context& context) { context.set_timer("expire", seconds(1)); }));
  partition->set_config(bad);
  world_.run_for(milliseconds(3500));
  EXPECT_EQ(rung_.size(), 3u);
  EXPECT_EQ(text_of(query("a")), "one");
  partition->set_config(good);
  world_.run_for(seconds(10));
  EXPECT_EQ(rung_.size(), 4u);
  EXPECT_EQ(text_of(query("a")), "by timer");
}

TEST_F(AggregateTimersTest, TenThousandRing) {
  int count = 0;
  script_.timer = [&count](Ledger&, std::string_view, Context&) { ++count; };
  ask("a", timers([](Context& context) {
        for (int round = 0; round < 3; ++round) {
          for (int n = 0; n < 10'000; ++n) {
            context.set_timer(std::to_string(n), milliseconds(100 + n % 977));
          }
        }
      }));
  world_.run_for(seconds(2));
  EXPECT_EQ(count, 10'000);
}

class AggregateEffectsTest : public AggregateTest {
 protected:
  AggregateEffectsTest() {
    script_.effect_done = [this](Ledger&, const EffectOutcome& outcome, Context&) {
      auto line = std::string(outcome.name) + " " + std::string(name_of(outcome.error));
      if (outcome.answer) line += " " + static_cast<const Text&>(*outcome.answer).text;
      done_.push_back(std::move(line));
    };
    create("orders", 2);
    ask("a", put("one"));
    settle();
  }
  static Body begin_effect(Effect effect) {
    auto shared = std::make_shared<Effect>(std::move(effect));
    return [shared](Ledger&, Command& command, Context& context) {
      context.emit(as_bytes(command.key), as_bytes("pending"));
      context.start(*shared);
      context.answer(command.reply_to, nullptr);
    };
  }
  static Effect append(std::string name, TopicPartition to, std::string value) {
    AppendEffect call{.to = std::move(to), .records = {}};
    call.records.push_back({std::nullopt, Buffer::copy_of(value)});
    return {std::move(name), std::move(call)};
  }
  std::vector<std::string> values(const std::string& topic, std::int32_t partition,
                                  Isolation isolation = Isolation::read_uncommitted) {
    auto request = fetch_request(topic, {{.partition = partition, .from = Offset{0}}});
    request.isolation = isolation;
    request.bytes_min = 0;
    const auto fetched = fetch(0, std::move(request));
    EXPECT_TRUE(fetched);
    return values_of(fetched->topics[0].partitions[0]);
  }

  std::vector<std::string> done_;
};

TEST_F(AggregateEffectsTest, AppendToOtherPartitionsAndTellTheOutcome) {
  ask("a", begin_effect(append("to 0", {"orders", 0}, "hello")));
  ask("a", begin_effect(append("to 1", {"orders", 1}, "hi")));
  settle();
  EXPECT_THAT(done_, ElementsAre("to 0 NONE", "to 1 NONE"));
  EXPECT_THAT(values("orders", 0), ElementsAre("hello"));
  EXPECT_THAT(values("orders", 1), ElementsAre("hi"));
}

TEST_F(AggregateEffectsTest, EndWhereNoRetryCanHelp) {
  ask("a", begin_effect(append("lost", {"nowhere", 0}, "hello")));
  settle();
  EXPECT_THAT(done_, ElementsAre("lost UNKNOWN_TOPIC_OR_PARTITION"));
}

TEST_F(AggregateEffectsTest, WaitForTheirEventsToBeCommitted) {
  const auto id = partition_of("a");
  hold(id, true);
  const auto held = begin("a", begin_effect(append("to 0", {"orders", 0}, "hello")));
  world_.run_for(seconds(5));
  EXPECT_THAT(values("orders", 0), IsEmpty());
  hold(id, false);
  settle();
  EXPECT_TRUE(held->has_value());
  EXPECT_THAT(values("orders", 0), ElementsAre("hello"));
}

TEST_F(AggregateEffectsTest, AreNotBegunWhenTheirEventsAreNotAppended) {
  const auto partition = partition_at(partition_of("a"));
  auto config = partition->config();
  config.min_insync_replicas = 2;
  partition->set_config(config);
  EXPECT_EQ(text_of(ask("a", begin_effect(append("to 0", {"orders", 0}, "hello")))),
            "COORDINATOR_NOT_AVAILABLE");
  world_.run_for(seconds(60));
  EXPECT_THAT(values("orders", 0), IsEmpty());
  EXPECT_THAT(done_, IsEmpty());
}

TEST_F(AggregateEffectsTest, AreRetriedUntilTheySucceed) {
  const auto partition = partition_at({"orders", 0});
  const auto good = partition->config();
  auto bad = good;
  bad.min_insync_replicas = 2;
  partition->set_config(bad);
  ask("a", begin_effect(append("to 0", {"orders", 0}, "hello")));
  world_.run_for(seconds(60));
  EXPECT_THAT(done_, IsEmpty());
  partition->set_config(good);
  world_.run_for(seconds(11));
  EXPECT_THAT(done_, ElementsAre("to 0 NONE"));
  EXPECT_THAT(values("orders", 0), ElementsAre("hello"));
}

TEST_F(AggregateEffectsTest, RunOneByOneUnderOneName) {
  const auto partition = partition_at({"orders", 0});
  const auto good = partition->config();
  auto bad = good;
  bad.min_insync_replicas = 2;
  partition->set_config(bad);
  ask("a", begin_effect(append("same", {"orders", 0}, "first")));
  ask("a", begin_effect(append("same", {"orders", 1}, "second")));
  world_.run_for(seconds(5));
  EXPECT_THAT(values("orders", 1), IsEmpty());
  partition->set_config(good);
  world_.run_for(seconds(20));
  EXPECT_THAT(done_, ElementsAre("same NONE", "same NONE"));
  EXPECT_THAT(values("orders", 1), ElementsAre("second"));
}

TEST_F(AggregateEffectsTest, AskOtherAggregates) {
  Effect effect{"call",
                CommandEffect{"ledger", "b", [] { return std::make_unique<Ask>(put("from a")); }}};
  ask("a", begin_effect(std::move(effect)));
  settle();
  EXPECT_THAT(done_, ElementsAre("call NONE from a"));
  EXPECT_EQ(text_of(query("b")), "from a");
}

TEST_F(AggregateEffectsTest, OfADroppedObjectComeToNothingAndAreAskedForAgain) {
  const auto partition = partition_at({"orders", 0});
  const auto good = partition->config();
  auto bad = good;
  bad.min_insync_replicas = 2;
  partition->set_config(bad);
  ask("a", begin_effect(append("to 0", {"orders", 0}, "hello")));
  settle();
  script_.loaded = [](Ledger& ledger, Context& context) {
    if (ledger.texts["a"] == "pending") context.start(append("again", {"orders", 0}, "hello"));
  };
  ask("a", [](Ledger&, Command&, Context&) { throw std::runtime_error("oops"); });
  partition->set_config(good);
  world_.run_for(seconds(60));
  EXPECT_THAT(done_, ElementsAre("again NONE"));
  EXPECT_THAT(values("orders", 0), ElementsAre("hello"));
}

// What a producer has sent in a transaction is read once its marker is there.
TEST_F(AggregateEffectsTest, EndTransactions) {
  BatchBuilder builder(
      {.producer_id = 7, .producer_epoch = 0, .base_sequence = 0, .transactional = true});
  builder.add(node_.clock().wall(), std::nullopt, as_bytes("in a transaction"));
  const auto batch = std::move(builder).finish();
  ASSERT_TRUE(batch);
  auto& owner = broker_->partitions().owner_of("orders", 0);
  ASSERT_TRUE(world_.run(owner.shard(), [&]() -> Task<> {
    auto appended = partition_at({"orders", 0})->append_own(*batch);
    if (!appended) co_return Error{Errc::internal, appended.error().message};
    co_return co_await appended->written;
  }));
  EXPECT_THAT(values("orders", 0, Isolation::read_committed), IsEmpty());

  Effect effect{"end", MarkerEffect{.to = {"orders", 0},
                                    .producer_id = 7,
                                    .producer_epoch = 0,
                                    .commit = true,
                                    .coordinator_epoch = 3}};
  ask("a", begin_effect(effect));
  settle();
  EXPECT_THAT(done_, ElementsAre("end NONE"));
  const auto read = values("orders", 0, Isolation::read_committed);
  ASSERT_EQ(read.size(), 2u);  // the marker's own record among them
  EXPECT_EQ(read[0], "in a transaction");

  // An older coordinator comes too late.
  std::get<MarkerEffect>(effect.call).coordinator_epoch = 2;
  ask("a", begin_effect(effect));
  settle();
  EXPECT_THAT(done_.back(), StartsWith("end TRANSACTION_COORDINATOR_FENCED"));
}

TEST_F(AggregateEffectsTest, TellAnAggregateOfTransactionsThatEndInItsLog) {
  ask("a", begin_effect({"end", MarkerEffect{.to = partition_of("a"),
                                             .producer_id = 7,
                                             .producer_epoch = 1,
                                             .commit = false}}));
  settle();
  EXPECT_THAT(script_.ended, ElementsAre("7/1 abort"));
  script_.ended.clear();
  reopen();
  EXPECT_THAT(script_.ended, ElementsAre("7/1 abort"));
  EXPECT_EQ(text_of(ask("a", put("goes on"))), "goes on");
}

}  // namespace
}  // namespace millrace::kernel
