#include <millrace/testing/aggregate_driver.h>

#include <stdexcept>

#include <gtest/gtest.h>

namespace millrace::testing {
namespace {

using namespace std::chrono_literals;

// Counts per key. "add N", "later N" (answered when its timer comes), "fail", "effect",
// "transfer", "throw".
class Tally final : public PartitionAggregate {
 public:
  void decide(Command& command, Context& context) override {
    const auto said = dynamic_cast<const BytesMessage&>(command.body).bytes.text();
    if (said == "throw") throw std::runtime_error("cannot do this");
    if (said == "twice") {
      context.answer(command.reply_to, text("first"));
      context.answer(command.reply_to, text("second"));
    } else if (said == "later") {
      waiting_ = command.reply_to;
      context.set_timer("later", 5s);
    } else if (said == "effect") {
      context.emit(as_bytes(command.key), as_bytes("1"));
      context.start({"copy", AppendEffect{{"elsewhere", 3}, {}}});
    } else if (said == "bad event") {
      context.emit(as_bytes(command.key), as_bytes("no number"));
    } else if (said == "look") {
      const auto* topic = context.cluster().find("orders");
      context.answer(command.reply_to, text(topic ? std::to_string(topic->partitions()) : "none"));
    } else {
      context.emit(as_bytes(command.key), as_bytes(said));
      context.emit(as_bytes("all"), as_bytes(said));
      context.answer(command.reply_to, text(std::to_string(count_of(command.key))));
    }
  }

  Result<> evolve(const RecordView& event, const EventInfo& info) override {
    int n = 0;
    for (const char c : as_text(*event.value)) {
      if (c < '0' || c > '9') return Error{Errc::corrupt, "no number"};
      n = n * 10 + (c - '0');
    }
    if (info.transactional) {
      pending_ += n;
    } else {
      counts_[std::string(as_text(*event.key))] += n;
    }
    replayed += info.replay ? 1 : 0;
    return {};
  }

  Result<std::unique_ptr<Message>> query(std::string_view key, const Message&) const override {
    const auto found = counts_.find(key);
    if (found == counts_.end()) return Error{Errc::not_found, "no such key"};
    return text(std::to_string(found->second));
  }

  void end_transaction(std::int64_t, std::int16_t, bool commit, const EventInfo&) override {
    if (commit) counts_["transactions"] += pending_;
    pending_ = 0;
  }

  void loaded(Context& context) override { context.set_timer("tick", 60s); }

  void timer(std::string_view name, Context& context) override {
    fired += std::string(name) + "@" +
             std::to_string(context.now().time_since_epoch() / std::chrono::seconds(1)) + " ";
    if (name == "later") context.answer(waiting_, text("now"));
    if (name == "tick") context.set_timer("tick", 60s);
  }

  void effect_done(const EffectOutcome& outcome, Context& context) override {
    if (outcome.error == ErrorCode::none) {
      context.emit(as_bytes("done"), as_bytes("1"));
    } else {
      context.start({"again", CommandEffect{"other", "key", {}}});
    }
  }

  void cluster_changed(Context& context) override {
    context.emit(as_bytes("changes"), as_bytes("1"));
  }

  Result<> snapshot(SnapshotWriter& out) const override {
    for (const auto& [key, count] : counts_) {
      out.put(as_bytes(key), as_bytes(std::to_string(count)));
    }
    return {};
  }
  Result<> restore(SnapshotReader& in) override {
    while (const auto entry = in.next()) {
      counts_[std::string(as_text(entry->key))] = std::stoi(std::string(as_text(entry->value)));
    }
    return {};
  }

  std::string fired;
  int replayed = 0;

 private:
  static std::unique_ptr<Message> text(std::string_view said) {
    return std::make_unique<BytesMessage>(Buffer::copy_of(said));
  }

  int count_of(std::string_view key) const {
    const auto found = counts_.find(key);
    return found == counts_.end() ? 0 : found->second;
  }

  std::map<std::string, int, std::less<>> counts_;
  int pending_ = 0;
  ReplyTo waiting_ = ReplyTo::nobody;
};

class Tallies final : public AggregateFactory {
 public:
  AggregateDeclaration declaration() const override { return {.name = "tally", .topic = "events"}; }
  std::unique_ptr<PartitionAggregate> make(const TopicPartition&) override {
    return std::make_unique<Tally>();
  }
};

class AggregateDriverTest : public ::testing::Test {
 protected:
  std::string said(ReplyTo token) const {
    const auto* message = driver_.answer_as<BytesMessage>(token);
    return message ? std::string(message->bytes.text()) : "nothing";
  }
  std::string count(std::string_view key) {
    const auto found = driver_.query(key, BytesMessage({}));
    if (!found) return "none";
    return std::string(dynamic_cast<const BytesMessage&>(**found).bytes.text());
  }
  Tally& tally() { return dynamic_cast<Tally&>(driver_.aggregate()); }

  Tallies factory_;
  AggregateDriver driver_{factory_};
};

TEST_F(AggregateDriverTest, ACommandSeesTheEventsOfThoseBefore) {
  EXPECT_EQ(said(driver_.send("a", "2")), "0");
  EXPECT_EQ(said(driver_.send("a", "3")), "2");
  EXPECT_EQ(count("a"), "5");
  ASSERT_EQ(driver_.log().size(), 4U);
  EXPECT_EQ(driver_.log_from(Offset{2})[0].key_text(), "a");
  EXPECT_EQ(driver_.log_from(Offset{2})[0].value_text(), "3");
  EXPECT_EQ(driver_.log_from(Offset{2})[1].offset, Offset{3});
}

TEST_F(AggregateDriverTest, TheFirstOfTwoAnswersCounts) {
  EXPECT_EQ(said(driver_.send("a", "twice")), "first");
}

TEST_F(AggregateDriverTest, AnswersWaitForTheHighWatermark) {
  driver_.hold_high_watermark();
  const auto first = driver_.send("a", "1");
  const auto second = driver_.send("a", "1");
  const auto asked = driver_.ask("a", BytesMessage({}));
  driver_.send("a", "effect");
  EXPECT_TRUE(driver_.waits(first));
  EXPECT_EQ(driver_.waiting(), 4U);
  EXPECT_TRUE(driver_.effects().empty());
  driver_.move_high_watermark(Offset{2});
  EXPECT_EQ(said(first), "0");
  EXPECT_TRUE(driver_.waits(second));
  EXPECT_TRUE(driver_.waits(asked));
  driver_.release_high_watermark();
  EXPECT_EQ(said(second), "1");
  EXPECT_EQ(said(asked), "2");
  EXPECT_EQ(driver_.effects(), std::vector<std::string>{"copy"});
}

TEST_F(AggregateDriverTest, AnAppendThatFailsChangesNothing) {
  driver_.fail_appends();
  const auto failed = driver_.send("a", "7");
  EXPECT_EQ(driver_.error(failed), ErrorCode::coordinator_not_available);
  EXPECT_TRUE(driver_.log().empty());
  EXPECT_EQ(count("a"), "none");
  EXPECT_EQ(said(driver_.send("a", "1")), "0");
  EXPECT_EQ(count("a"), "1");
}

TEST_F(AggregateDriverTest, EffectsOfAFailedAppendDoNotRun) {
  driver_.fail_appends();
  driver_.send("a", "effect");
  EXPECT_TRUE(driver_.effects().empty());
}

TEST_F(AggregateDriverTest, WhatWasNoCommandIsToldAgain) {
  driver_.fail_appends();
  driver_.cluster_changed();
  EXPECT_EQ(count("changes"), "none");
  driver_.advance(1s);
  EXPECT_EQ(count("changes"), "1");
  driver_.send("a", "effect");
  driver_.fail_appends();
  driver_.finish_effect("copy");
  EXPECT_EQ(driver_.effects(), std::vector<std::string>{"copy"});
  driver_.advance(1s);
  EXPECT_TRUE(driver_.effects().empty());
  EXPECT_EQ(count("done"), "1");
}

TEST_F(AggregateDriverTest, EffectsOfOneNameRunOneAfterTheOther) {
  driver_.send("a", "effect");
  driver_.send("a", "effect");
  driver_.finish_effect("copy");
  EXPECT_EQ(driver_.effects(), std::vector<std::string>{"copy"});
  driver_.finish_effect("copy");
  EXPECT_TRUE(driver_.effects().empty());
}

TEST_F(AggregateDriverTest, TimersFireInOrderAtTheirTime) {
  const auto later = driver_.send("a", "later");
  EXPECT_EQ(driver_.timer_in("later"), 5s);
  driver_.advance(4s);
  EXPECT_TRUE(driver_.waits(later));
  driver_.advance(120s);
  EXPECT_EQ(said(later), "now");
  EXPECT_EQ(tally().fired, "later@5 tick@60 tick@120 ");
  EXPECT_EQ(driver_.wall(), Timestamp{1'700'000'124'000});
  EXPECT_TRUE(driver_.advance_to_timer());
  EXPECT_EQ(driver_.now().time_since_epoch(), 180s);
}

TEST_F(AggregateDriverTest, AReloadReplaysTheLogAndEndsTheWaiting) {
  driver_.send("a", "2");
  const auto later = driver_.send("a", "later");
  ASSERT_TRUE(driver_.reload());
  EXPECT_EQ(driver_.error(later), ErrorCode::not_coordinator);
  EXPECT_EQ(driver_.timers(), std::vector<std::string>{"tick"});
  EXPECT_EQ(tally().replayed, 2);
  EXPECT_EQ(count("a"), "2");
}

TEST_F(AggregateDriverTest, ASnapshotSparesTheReplay) {
  driver_.send("a", "2");
  ASSERT_TRUE(driver_.take_snapshot());
  driver_.send("a", "3");
  ASSERT_TRUE(driver_.reload());
  EXPECT_EQ(tally().replayed, 2);
  EXPECT_EQ(count("a"), "5");
  EXPECT_EQ(*driver_.state(), *driver_.replayed_state());
}

TEST_F(AggregateDriverTest, WhatThrowsIsLoadedAgain) {
  driver_.send("a", "2");
  const auto waits = driver_.send("a", "later");
  const auto thrown = driver_.send("a", "throw");
  EXPECT_EQ(driver_.failure(), "cannot do this");
  EXPECT_EQ(driver_.error(waits), ErrorCode::not_coordinator);
  EXPECT_EQ(driver_.error(thrown), ErrorCode::unknown_server_error);
  EXPECT_TRUE(driver_.loaded());
  EXPECT_EQ(count("a"), "2");
}

TEST_F(AggregateDriverTest, AnEventThatItCannotReadLeavesNothingLoaded) {
  driver_.send("a", "bad event");
  EXPECT_FALSE(driver_.loaded());
  EXPECT_NE(driver_.failure().find("at offset 0 of the log: no number"), std::string::npos);
  EXPECT_EQ(driver_.error(driver_.send("a", "1")), ErrorCode::not_coordinator);
}

TEST_F(AggregateDriverTest, WhatALostLeaderHadAloneIsGone) {
  driver_.send("a", "1");
  driver_.hold_high_watermark();
  const auto unsure = driver_.send("a", "2");
  driver_.unload();
  driver_.cut(driver_.high_watermark());
  driver_.release_high_watermark();
  ASSERT_TRUE(driver_.load());
  EXPECT_EQ(driver_.error(unsure), ErrorCode::not_coordinator);
  EXPECT_EQ(count("a"), "1");
}

TEST_F(AggregateDriverTest, EffectsAreFinishedByTheTest) {
  driver_.send("a", "effect");
  const auto* copy = driver_.effect_as<AppendEffect>("copy");
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(to_string(copy->to), "elsewhere-3");
  driver_.finish_effect("copy", ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(driver_.effects(), std::vector<std::string>{"again"});
  driver_.finish_effect("again");
  EXPECT_EQ(count("done"), "1");
}

TEST_F(AggregateDriverTest, TransactionsCountOnceTheyAreCommitted) {
  ASSERT_TRUE(driver_.write("t", "5", {7, 0, true}));
  EXPECT_EQ(count("transactions"), "none");
  driver_.end_transaction(7, 0, true);
  EXPECT_EQ(count("transactions"), "5");
  ASSERT_TRUE(driver_.write("t", "5", {7, 0, true}));
  driver_.end_transaction(7, 0, false);
  ASSERT_TRUE(driver_.reload());
  EXPECT_EQ(count("transactions"), "5");
}

TEST_F(AggregateDriverTest, TheClusterIsWhatTheTestSays) {
  EXPECT_EQ(said(driver_.send("a", "look")), "none");
  const auto id = driver_.cluster().put("orders", 3);
  const auto version = driver_.cluster().version();
  EXPECT_EQ(said(driver_.send("a", "look")), "3");
  EXPECT_EQ(driver_.cluster().put("orders", 4), id);
  EXPECT_GT(driver_.cluster().version(), version);
  EXPECT_EQ(driver_.cluster().find(id)->partitions(), 4);
  driver_.cluster_changed();
  EXPECT_EQ(count("changes"), "1");
  driver_.cluster().remove("orders");
  EXPECT_EQ(driver_.cluster().find(id), nullptr);
}

TEST_F(AggregateDriverTest, CompactionKeepsTheLastOfEachKey) {
  driver_.send("a", "1");
  driver_.send("b", "2");
  driver_.compact();
  ASSERT_EQ(driver_.log().size(), 3U);
  EXPECT_EQ(driver_.log()[0].offset, Offset{0});
  EXPECT_EQ(driver_.log()[1].offset, Offset{2});
  EXPECT_EQ(driver_.end(), Offset{4});
}

}  // namespace
}  // namespace millrace::testing
