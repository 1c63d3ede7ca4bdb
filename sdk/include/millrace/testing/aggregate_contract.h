// What every aggregate must do, as gtest cases. Include it in one source file of a test program,
// and say how the factory is made and what is said to it, in order:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, AggregateContract, ::testing::Values(AggregateCase{
//       .name = "accounts",
//       .make = [] { return std::make_unique<EntityFactory<Account>>("accounts"); },
//       .commands = {{"alice", [] { return entity_command("deposit 5"); }}}}));
//
// Those that take no snapshots are held to what their queries answer, as text.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/testing/aggregate_driver.h>

namespace millrace::testing {

struct AggregateCommand {
  std::string key;
  std::function<std::unique_ptr<Message>()> make;
};

struct AggregateCase {
  std::string name;
  std::function<std::unique_ptr<AggregateFactory>()> make;
  std::vector<AggregateCommand> commands;
  /// What is asked of every key that a command has, and how an answer reads; none: it has no
  /// queries, or they tell no more than the snapshot does.
  std::function<std::unique_ptr<Message>()> question = {};
  std::function<std::string(const Message&)> read = {};
  /// Before the first command: topics, settings.
  std::function<void(AggregateDriver&)> prepare = {};
};
inline void PrintTo(const AggregateCase& one, std::ostream* out) { *out << one.name; }

class AggregateContract : public ::testing::TestWithParam<AggregateCase> {
 protected:
  AggregateContract() : factory_(GetParam().make()), driver_(*factory_) {
    if (GetParam().prepare) GetParam().prepare(driver_);
  }
  void SetUp() override { ASSERT_TRUE(driver_.loaded()) << driver_.failure(); }
  void TearDown() override { EXPECT_EQ(driver_.failures(), 0U) << driver_.failure(); }

  static const std::vector<AggregateCommand>& commands() { return GetParam().commands; }

  ReplyTo send(const AggregateCommand& command) {
    return driver_.send(command.key, command.make());
  }
  void send_all() {
    for (const auto& command : commands()) send(command);
  }

  /// All that can be seen of what the log has made of it.
  std::vector<AggregateDriver::Entry> seen() {
    std::vector<AggregateDriver::Entry> all;
    if (auto state = driver_.state()) all = *std::move(state);
    if (!GetParam().question) return all;
    for (const auto& command : commands()) {
      const auto answer = driver_.query(command.key, *GetParam().question());
      all.push_back(
          {"query " + command.key, answer ? GetParam().read(**answer) : answer.error().detail});
    }
    return all;
  }

  std::unique_ptr<AggregateFactory> factory_;
  AggregateDriver driver_;
};

TEST_P(AggregateContract, DecidesSomething) {
  ASSERT_FALSE(commands().empty());
  const auto before = seen();
  send_all();
  EXPECT_FALSE(driver_.log().empty());
  EXPECT_NE(seen(), before);
}

TEST_P(AggregateContract, AReplayMakesTheSameState) {
  send_all();
  const auto expected = seen();
  ASSERT_TRUE(driver_.reload());
  EXPECT_EQ(seen(), expected);
}

TEST_P(AggregateContract, ASnapshotAndTheRestMakeTheSameState) {
  if (!driver_.take_snapshot()) return;  // it takes none, and need not
  send_all();
  const auto expected = seen();
  for (std::size_t taken_after = 0; taken_after <= commands().size(); ++taken_after) {
    AggregateDriver other(*factory_);
    if (GetParam().prepare) GetParam().prepare(other);
    for (std::size_t at = 0; at < commands().size(); ++at) {
      if (at == taken_after) {
        ASSERT_TRUE(other.take_snapshot());
      }
      other.send(commands()[at].key, commands()[at].make());
    }
    if (taken_after == commands().size()) {
      ASSERT_TRUE(other.take_snapshot());
    }
    ASSERT_TRUE(other.reload());
    std::swap(other, driver_);
    EXPECT_EQ(seen(), expected) << "taken after " << taken_after << " commands";
    std::swap(other, driver_);
  }
}

TEST_P(AggregateContract, AnAppendThatFailsChangesNothing) {
  for (const auto& command : commands()) {
    const auto before = seen();
    const auto end = driver_.end();
    driver_.fail_appends();
    const auto failed = send(command);
    driver_.fail_appends(0);
    if (driver_.end() == end) {
      EXPECT_EQ(seen(), before) << command.key;
    }
    if (driver_.end() == end && driver_.answer(failed) &&
        driver_.error(failed) == ErrorCode::none) {
      continue;  // it had nothing to append
    }
    send(command);
  }
  ASSERT_TRUE(driver_.reload());
}

TEST_P(AggregateContract, AQueryChangesNothing) {
  if (!GetParam().question) return;  // it has no queries
  send_all();
  const auto before = driver_.state();
  const auto end = driver_.end();
  seen();
  EXPECT_EQ(driver_.end(), end);
  if (before) {
    EXPECT_EQ(*driver_.state(), *before);
  }
}

TEST_P(AggregateContract, CompactionLosesNothing) {
  const auto settings = factory_->declaration().settings;
  const auto policy = settings.find("cleanup.policy");
  if (policy == settings.end() || policy->second != "compact") return;  // there is none
  send_all();
  const auto expected = seen();
  for (const bool tombstones : {true, false}) {
    driver_.compact(tombstones);
    ASSERT_TRUE(driver_.reload());
    EXPECT_EQ(seen(), expected);
  }
}

TEST_P(AggregateContract, RefusesWhatItDoesNotKnow) {
  class Unknown final : public Message {};
  const auto unknown = driver_.send("key", std::make_unique<Unknown>());
  ASSERT_NE(driver_.answer(unknown), nullptr) << "nobody is told";
  EXPECT_NE(driver_.error(unknown), ErrorCode::none);
  for (const auto* text : {"", "\xff\xfe", "{", "nothing that it knows"}) {
    const auto garbage = driver_.send("key", text);
    ASSERT_NE(driver_.answer(garbage), nullptr) << "nobody is told";
  }
}

TEST_P(AggregateContract, GoesOnWithoutWhoeverWaited) {
  for (const auto& command : commands()) driver_.tell(command.key, command.make());
  driver_.advance(std::chrono::hours(1));
  ASSERT_TRUE(driver_.reload());
  driver_.advance(std::chrono::hours(1));
}

}  // namespace millrace::testing
