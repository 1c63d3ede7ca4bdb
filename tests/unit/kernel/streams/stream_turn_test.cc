// Turns: records through steps, what counts when one fails, what comes back after a crash.
#include "stream_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace millrace::kernel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Counts in its state, and emits the count.
Result<> count(const RecordView& input, Emitter& out) {
  const auto before = out.state().get(as_bytes("n"));
  const auto now = std::to_string(before ? std::stoi(text(before)) + 1 : 1);
  out.state().put(as_bytes("n"), as_bytes(now));
  out.emit({input.key, as_bytes(now), {}, {}, {}});
  return {};
}

/// Passes on, fails on "poison" after it has emitted and changed its state.
Result<> picky(const RecordView& input, Emitter& out) {
  out.state().put(as_bytes("last"), *input.value);
  out.emit(output(input));
  if (text(input.value) == "poison") return Error{Errc::invalid_argument, "poisoned"};
  return {};
}

TEST(StreamTurnTest, RecordsGoThroughAllStepsAndThePositionMoves) {
  TestTurns turns({TestStep(pass), TestStep(count)});
  turns.send({"a", "b"});
  turns.send({"c"});
  const auto result = turns.turn();
  EXPECT_THAT(values_for(result, "out"), ElementsAre("1", "2", "3"));
  EXPECT_EQ(turns.position(), Offset{3});
  EXPECT_EQ(result.counts[1].records_in, 3);
  EXPECT_EQ(result.counts[1].records_out, 3);
  EXPECT_FALSE(turns.turn().changelog) << "nothing new, nothing to commit";
}

TEST(StreamTurnTest, AfterACrashStateAndPositionAreThoseOfTheLastCommit) {
  TestTurns turns({TestStep(count)});
  turns.send({"a", "b"});
  turns.turn();
  turns.send({"c"});
  turns.turn();
  turns.changelog.pop_back();  // the crash came before the second commit
  turns.begin_anew();
  EXPECT_EQ(turns.position(), Offset{2});
  EXPECT_EQ(turns.state_at("n"), "2");
  EXPECT_THAT(values_for(turns.turn(), "out"), ElementsAre("3")) << "the output repeats";
  EXPECT_EQ(turns.state_at("n"), "3") << "the state is exact";
}

TEST(StreamTurnTest, ASnapshotIsTheSameAsTheChangelog) {
  TestTurns turns({TestStep(count), TestStep(picky)});
  turns.send({"a", "b", "c"});
  turns.turn();
  const auto snapshot = turns.state->snapshot(Offset{17});
  turns.changelog.clear();
  turns.begin_anew();
  EXPECT_EQ(turns.state_at("n"), "(none)");
  EXPECT_FALSE(turns.state->restore(snapshot, Offset{16})) << "it is of another offset";
  ASSERT_TRUE(turns.state->restore(snapshot, Offset{17}));
  EXPECT_EQ(turns.position(), Offset{3});
  EXPECT_EQ(turns.state_at("n"), "3");
  EXPECT_EQ(turns.state_at("last", 1), "3");
}

TEST(StreamTurnTest, StopCommitsWhatWasBeforeAndNothingOfTheRecord) {
  TestTurns turns({TestStep(count), TestStep(picky), TestStep(pass)});
  turns.send({"a"});
  turns.turn();
  TestTurns poisoned({TestStep(picky), TestStep(count)});
  poisoned.send({"a", "poison", "b"});
  const auto result = poisoned.turn();
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(to_string(*result.failure), "step step-0 at in-0 offset 1: poisoned");
  EXPECT_THAT(values_for(result, "out"), ElementsAre("1"));
  EXPECT_EQ(poisoned.position(), Offset{1});
  EXPECT_EQ(poisoned.state_at("last"), "a");
  EXPECT_EQ(poisoned.state_at("n", 1), "1") << "also what later steps have done";
}

TEST(StreamTurnTest, AFailureBehindTakesBackWhatWasInFront) {
  TestTurns turns({TestStep(count), TestStep([](const RecordView& input, Emitter& out) -> Result<> {
                     if (text(input.value) == "2") throw std::runtime_error("no twos");
                     return pass(input, out);
                   })},
                  {.on_error = ErrorPolicy::skip});
  turns.send({"a", "b", "c"});
  const auto result = turns.turn();
  EXPECT_THAT(values_for(result, "out"), ElementsAre("1")) << "the count stays at 1: 2 fails again";
  EXPECT_EQ(result.skipped, 2);
  EXPECT_EQ(result.counts[1].errors, 2);
  EXPECT_EQ(turns.position(), Offset{3});
  EXPECT_EQ(turns.state_at("n"), "1");
}

TEST(StreamTurnTest, ADeadLetterIsTheRecordWithItsStory) {
  TestTurns turns({TestStep(picky)}, {.on_error = ErrorPolicy::dead_letter, .dead_letter = "bad"});
  turns.send({"a", "poison", "b"});
  const auto result = turns.turn();
  EXPECT_THAT(values_for(result, "out"), ElementsAre("a", "b"));
  EXPECT_THAT(values_for(result, "bad"), ElementsAre("poison"));
  for (const auto& output : result.outputs) {
    if (output.to.topic != "bad") continue;
    const auto content = std::string(output.batches.at(0).text());
    for (const auto* part : {"millrace-error", "poisoned", "millrace-offset", "step-0"}) {
      EXPECT_THAT(content, HasSubstr(part));
    }
  }
}

TEST(StreamTurnTest, BeyondItsMemoryAStreamEndsWhateverThePolicyAndWhoeverCatches) {
  for (const bool catches : {false, true}) {
    TestTurns turns({TestStep([catches](const RecordView&, Emitter& out) -> Result<> {
                      const std::string large(1 << 20, 'x');
                      try {
                        for (int i = 0;; ++i) {
                          out.state().put(as_bytes(std::to_string(i)), as_bytes(large));
                        }
                      } catch (...) {
                        if (!catches) throw;
                      }
                      return {};
                    })},
                    {.on_error = ErrorPolicy::skip}, 4 << 20);
    turns.send({"a"});
    const auto result = turns.turn();
    ASSERT_TRUE(result.failure);
    EXPECT_THAT(result.failure->error.detail, HasSubstr("memory of 4194304 bytes"));
    EXPECT_EQ(turns.state->chain().state_of(0).size(), 0);
  }
}

TEST(StreamTurnTest, OutputBeyondMemoryEndsTheStreamAsWell) {
  TestTurns turns({TestStep([](const RecordView& input, Emitter& out) -> Result<> {
                    while (true) out.emit(output(input));
                  })},
                  {.on_error = ErrorPolicy::skip}, 4 << 20);
  turns.send({std::string(100'000, 'x')});
  const auto result = turns.turn();
  ASSERT_TRUE(result.failure);
  EXPECT_THAT(values_for(result, "out"), IsEmpty());
}

TEST(StreamTurnTest, ATopicThatIsNotKnownIsAskedForAndTheRecordTriedAgain) {
  TestTurns turns({TestStep([](const RecordView& input, Emitter& out) -> Result<> {
    auto record = output(input);
    if (text(input.value) == "elsewhere") record.topic = "other";
    out.emit(record);
    return {};
  })});
  turns.send({"a", "elsewhere", "b"});
  const auto first = turns.turn();
  EXPECT_EQ(first.unknown_topic, "other");
  EXPECT_THAT(values_for(first, "out"), ElementsAre("a"));
  turns.state->outputs().set_partitions("other", 2);
  const auto second = turns.turn();
  EXPECT_THAT(values_for(second, "other"), ElementsAre("elsewhere"));
  EXPECT_THAT(values_for(second, "out"), ElementsAre("b"));

  turns.send({"elsewhere"});
  turns.begin_anew();
  turns.turn();
  turns.state->outputs().set_partitions("other", 0);
  const auto failed = turns.turn();
  ASSERT_TRUE(failed.failure);
  EXPECT_THAT(failed.failure->error.detail, HasSubstr("there is no topic other"));
}

TEST(StreamTurnTest, TimersFireBeforeTheRecordThatMovesTimeAndSurviveACrash) {
  TestTurns turns({TestStep(
      [](const RecordView& input, Emitter& out) -> Result<> {
        out.set_timer(*input.value, {input.timestamp.ms + 50});
        return pass(input, out);
      },
      [](Bytes name, Emitter& out) -> Result<> {
        const auto value = "timer " + text(name);
        out.emit({{}, as_bytes(value), {}, {}, {}});
        return {};
      })});
  turns.send({"a"}, 100);
  turns.send({"b"}, 149);
  EXPECT_THAT(values_for(turns.turn(), "out"), ElementsAre("a", "b"));
  turns.begin_anew();
  turns.send({"c"}, 150);
  EXPECT_THAT(values_for(turns.turn(), "out"), ElementsAre("timer a", "c"));
  turns.send({"d"}, 1000);
  EXPECT_THAT(values_for(turns.turn(), "out"), ElementsAre("timer b", "timer c", "d"));
}

TEST(StreamTurnTest, ATimerForATimeThatIsOverIsForTheNextRecord) {
  TestTurns turns({TestStep(
      [](const RecordView& input, Emitter& out) -> Result<> {
        if (text(input.value) == "a") out.set_timer(as_bytes("t"), {0});
        return pass(input, out);
      },
      [](Bytes name, Emitter& out) -> Result<> {
        out.set_timer(name, {0});  // for ever: it must not hold the record up
        out.emit({{}, as_bytes("tick"), {}, {}, {}});
        return {};
      })});
  turns.send({"a", "b", "c"});
  EXPECT_THAT(values_for(turns.turn(), "out"), ElementsAre("a", "tick", "b", "tick", "c"));
}

TEST(StreamTurnTest, ATimerThatFailsIsGoneUnlessTheStreamStops) {
  const auto steps = [] {
    return std::deque<TestStep>{TestStep(
        [](const RecordView& input, Emitter& out) -> Result<> {
          if (text(input.value) == "a") out.set_timer(as_bytes("t"), {150});
          return pass(input, out);
        },
        [](Bytes, Emitter&) -> Result<> { return Error{Errc::internal, "no time for this"}; })};
  };
  TestTurns skips(steps(), {.on_error = ErrorPolicy::skip});
  skips.send({"a"}, 100);
  skips.send({"b", "c"}, 200);
  const auto result = skips.turn();
  EXPECT_THAT(values_for(result, "out"), ElementsAre("a", "b", "c"));
  EXPECT_EQ(result.skipped, 1);

  TestTurns stops(steps());
  stops.send({"a"}, 100);
  stops.send({"b"}, 200);
  EXPECT_TRUE(stops.turn().failure);
  EXPECT_TRUE(stops.turn().failure) << "it is still set";
  EXPECT_EQ(stops.position(), Offset{1});
}

TEST(StreamTurnTest, WhatItTakesToEndATurnEarly) {
  TestTurns slow({TestStep(pass)});
  slow.clock.step = std::chrono::milliseconds(20);
  slow.send(std::vector<std::string>(1000, "x"));
  const auto first = slow.turn();
  EXPECT_LT(slow.position(), Offset{1000});
  EXPECT_EQ(values_for(first, "out").size(), static_cast<std::size_t>(slow.position().value));
  std::size_t all = values_for(first, "out").size();
  while (slow.position() < Offset{1000}) all += values_for(slow.turn(), "out").size();
  EXPECT_EQ(all, 1000) << "each once";

  TestTurns hurried({TestStep(
      [&](const RecordView& input, Emitter& out) -> Result<> { return pass(input, out); })});
  hurried.send({"a", "b"});
  hurried.state->hurry();
  EXPECT_THAT(values_for(hurried.turn(), "out"), ElementsAre("a"));
  EXPECT_THAT(values_for(hurried.turn(), "out"), ElementsAre("b"));
}

TEST(StreamTurnTest, APauseEndsTheTurn) {
  TestTurns turns({TestStep([](const RecordView& input, Emitter& out) -> Result<> {
    out.pause(std::chrono::milliseconds(4));
    return pass(input, out);
  })});
  turns.send({"a", "b", "c", "d"});
  const auto result = turns.turn();
  EXPECT_THAT(values_for(result, "out"), ElementsAre("a", "b", "c"));
  EXPECT_EQ(result.pause, std::chrono::milliseconds(12));
}

TEST(StreamTurnTest, ReplacingAnOperatorKeepsItsState) {
  TestTurns turns({TestStep(count)});
  turns.send({"a", "b"});
  turns.turn();
  turns.state->chain().replace(
      0, {nullptr, std::make_unique<TestStep>([](const RecordView& input, Emitter& out) {
            out.emit({input.key, out.state().get(as_bytes("n")), {}, {}, {}});
            return Result<>();
          })});
  turns.send({"c"});
  EXPECT_THAT(values_for(turns.turn(), "out"), ElementsAre("2"));
}

TEST(StreamTurnTest, ADamagedBatchEndsTheStream) {
  TestTurns turns({TestStep(pass)});
  BatchBuilder builder({});
  builder.add({1}, std::nullopt, as_bytes("value"));
  const auto batch = std::move(builder).finish().value();
  MutableBuffer damaged(batch.size());
  damaged.append(batch);
  damaged.data()[batch.size() - 2] ^= std::byte{1};
  TurnInput input{.sources = {}, .now = {1}};
  input.sources.push_back({"in", Payload(std::move(damaged).freeze()), {}});
  const auto result = turns.state->run(input);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->error.code, Errc::corrupt);
  EXPECT_THAT(values_for(result, "out"), IsEmpty());
}

TEST(StreamTurnTest, RecordsOfAbortedTransactionsAndMarkersArePassedOver) {
  TestTurns turns({TestStep(pass)});
  const auto batch = [](std::int64_t offset, std::int64_t producer, bool control,
                        const std::string& value) {
    BatchBuilder builder({.producer_id = producer,
                          .producer_epoch = 0,
                          .base_sequence = 0,
                          .transactional = producer >= 0,
                          .control = control,
                          .base_offset = {offset}});
    builder.add({1}, std::nullopt, as_bytes(value));
    return std::move(builder).finish().value();
  };
  Payload log;
  log.add(batch(0, 7, false, "aborted"));
  log.add(batch(1, 8, false, "committed"));
  log.add(batch(2, -1, false, "plain"));
  log.add(batch(3, 7, true, "marker"));
  log.add(batch(4, 7, false, "committed later"));
  TurnInput input{.sources = {}, .now = {1}};
  input.sources.push_back({"in", std::move(log), {{.producer_id = 7, .first_offset = {0}}}});
  const auto result = turns.state->run(input);
  EXPECT_THAT(values_for(result, "out"), ElementsAre("committed", "plain", "committed later"));
  EXPECT_EQ(turns.position(), Offset{5});
}

TEST(StreamTurnTest, OneRecordIsPassedOver) {
  TestTurns turns({TestStep(picky)}, {.skip = FailedRecord{{"in", 0}, {1}}});
  turns.send({"a", "poison", "b", "poison"});
  const auto result = turns.turn();
  EXPECT_THAT(values_for(result, "out"), ElementsAre("a", "b"));
  EXPECT_EQ(result.skipped, 1);
  ASSERT_TRUE(result.failure) << "that one alone";
  EXPECT_EQ(result.failure->offset, Offset{3});
  EXPECT_EQ(turns.position(), Offset{3});
}

TEST(StreamTurnTest, ATopicThatMayNotBeWrittenToIsAnErrorOfTheRecord) {
  const auto back = [](const RecordView& input, Emitter& out) -> Result<> {
    out.emit({input.key, input.value, {}, {}, text(input.value) == "loop" ? "in" : ""});
    return {};
  };
  TestTurns turns({TestStep(back)}, {.check_output = [](const std::string& topic) {
                    return topic == "in" ? std::optional<std::string>("\"in\" is a source")
                                         : std::nullopt;
                  }});
  turns.send({"a", "loop", "b"});
  const auto result = turns.turn();
  EXPECT_FALSE(result.unknown_topic);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(to_string(*result.failure),
            "step step-0 at in-0 offset 1: it sends to \"in\" is a source");
  EXPECT_THAT(values_for(result, "out"), ElementsAre("a"));
}

}  // namespace
}  // namespace millrace::kernel
