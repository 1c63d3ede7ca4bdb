#include <millrace/entity.h>

#include <stdexcept>

#include <gtest/gtest.h>

#include <millrace/testing/aggregate_driver.h>

namespace millrace {
namespace {

using testing::AggregateDriver;

struct Moved {
  int cents = 0;
};
std::string encode(const Moved& event) { return std::to_string(event.cents); }
Result<> decode(Bytes from, Moved& into) {
  const auto text = as_text(from);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into.cents);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return Error{Errc::corrupt, "not an amount: " + std::string(text)};
  }
  return {};
}

// "pay N", "take N", "split N" (two events), "look", "throw".
struct Account {
  using Command = std::string;
  using Event = Moved;

  Result<std::string> decide(const Command& command, Decision<Event>& decision) const {
    if (command == "look") return std::string(decision.key()) + " " + std::to_string(cents);
    if (command == "throw") throw std::runtime_error("no such thing");
    const auto space = command.find(' ');
    Moved moved;
    if (space == std::string::npos) return Error{Errc::invalid_argument, "pay or take?"};
    MR_CHECK(decode(as_bytes(std::string_view(command).substr(space + 1)), moved));
    const auto verb = command.substr(0, space);
    if (verb == "take") {
      decision.emit({-moved.cents});
      if (moved.cents > cents) return Error{Errc::conflict, "only " + std::to_string(cents)};
    } else if (verb == "split") {
      decision.emit({moved.cents / 2});
      decision.emit({moved.cents - moved.cents / 2});
    } else {
      decision.emit(moved);
    }
    return std::string("done");
  }
  void apply(const Moved& moved) { cents += moved.cents; }

  int cents = 0;
};
std::string encode(const Account& account) { return std::to_string(account.cents); }
Result<> decode(Bytes from, Account& into) {
  Moved moved;
  MR_CHECK(decode(from, moved));
  into.cents = moved.cents;
  return {};
}

// Nothing that could be kept in a snapshot.
struct Lamp {
  using Command = std::string;
  using Event = std::string;
  Result<std::string> decide(const Command& command, Decision<Event>& decision) const {
    if (command != (on ? "on" : "off")) decision.emit(command);
    return command;
  }
  void apply(const Event& event) { on = event == "on"; }
  bool on = false;
};

class EntityTest : public ::testing::Test {
 protected:
  ReplyTo send(std::string_view key, std::string_view command,
               std::optional<std::int64_t> expected = {}) {
    return driver_.send(key, entity_command(command, expected));
  }
  std::string said(ReplyTo token) const {
    const auto* answer = driver_.answer(token);
    if (answer == nullptr) return "waits";
    if (answer->error != ErrorCode::none) {
      return std::string(name_of(answer->error)) + ": " + answer->detail;
    }
    const auto& bytes = dynamic_cast<const BytesMessage&>(*answer->message);
    return std::string(bytes.bytes.text()) + " v" + std::to_string(*version_of(bytes));
  }

  EntityFactory<Account> factory_{"accounts", 4};
  AggregateDriver driver_{factory_};
};

TEST_F(EntityTest, EventsAreTheStateAndTheVersionCountsThem) {
  EXPECT_EQ(said(send("alice", "pay 10")), "done v1");
  EXPECT_EQ(said(send("alice", "split 7")), "done v3");
  EXPECT_EQ(said(send("bob", "pay 1")), "done v1");
  EXPECT_EQ(said(send("alice", "look")), "alice 17 v3");
  ASSERT_EQ(driver_.log().size(), 4U);
  EXPECT_EQ(driver_.log()[1].key_text(), "alice");
  EXPECT_EQ(driver_.log()[1].value_text(), "3");
}

TEST_F(EntityTest, AnotherVersionIsAConflictThatNamesIt) {
  EXPECT_EQ(said(send("alice", "pay 10", 0)), "done v1");
  EXPECT_EQ(said(send("alice", "pay 10", 0)),
            "INVALID_UPDATE_VERSION: \"alice\" has version 1, expected 0");
  EXPECT_EQ(said(send("alice", "pay 10", 1)), "done v2");
  EXPECT_EQ(said(send("alice", "look", 7)),
            "INVALID_UPDATE_VERSION: \"alice\" has version 2, expected 7");
}

TEST_F(EntityTest, AnExpectedVersionIsANumber) {
  auto command = entity_command("pay 10");
  command->headers.emplace_back(expected_version_header, Buffer::copy_of("1x"));
  EXPECT_EQ(said(driver_.send("alice", std::move(command))),
            "INVALID_REQUEST: millrace-expected-version: expected a number, found \"1x\"");
}

TEST_F(EntityTest, WhatIsRefusedHasNotHappened) {
  EXPECT_EQ(said(send("alice", "take 10")), "POLICY_VIOLATION: only 0");
  EXPECT_EQ(said(send("alice", "dance")), "INVALID_REQUEST: pay or take?");
  EXPECT_TRUE(driver_.log().empty());
  EXPECT_EQ(said(send("alice", "look")), "alice 0 v0");
}

TEST_F(EntityTest, TakesBytesAlone) {
  class Other final : public Message {};
  EXPECT_EQ(said(driver_.send("alice", std::make_unique<Other>())),
            "INVALID_REQUEST: entities take commands as bytes");
}

TEST_F(EntityTest, WhatThrowsIsReportedAndTheRestIsStillThere) {
  send("alice", "pay 10");
  EXPECT_EQ(said(send("alice", "throw")), "UNKNOWN_SERVER_ERROR: no such thing");
  EXPECT_EQ(said(send("alice", "look")), "alice 10 v1");
}

TEST_F(EntityTest, AFailedAppendLeavesTheVersion) {
  driver_.fail_appends();
  EXPECT_EQ(said(send("alice", "pay 10")), "COORDINATOR_NOT_AVAILABLE: the append failed");
  EXPECT_EQ(said(send("alice", "pay 10", 0)), "done v1");
}

TEST_F(EntityTest, ComesBackFromTheLogAndFromASnapshot) {
  send("alice", "pay 10");
  send("bob", "split 4");
  ASSERT_TRUE(driver_.reload());
  EXPECT_EQ(said(send("bob", "look")), "bob 4 v2");
  ASSERT_TRUE(driver_.take_snapshot());
  send("alice", "pay 1");
  ASSERT_TRUE(driver_.reload());
  EXPECT_EQ(said(send("alice", "look")), "alice 11 v2");
  EXPECT_EQ(*driver_.state(), *driver_.replayed_state());
}

TEST_F(EntityTest, AnEventThatCannotBeReadIsNamed) {
  ASSERT_FALSE(driver_.write("alice", "ten"));
  EXPECT_FALSE(driver_.loaded());
  EXPECT_NE(driver_.failure().find("not an amount: ten"), std::string::npos);
}

TEST_F(EntityTest, ARecordWithoutAValueEndsTheEntity) {
  send("alice", "pay 10");
  ASSERT_TRUE(driver_.write("alice", std::nullopt));
  EXPECT_EQ(said(send("alice", "look")), "alice 0 v0");
}

TEST_F(EntityTest, AQueryShowsTheState) {
  send("alice", "pay 10");
  const auto question = BytesMessage({});
  EXPECT_EQ(said(driver_.ask("alice", question)), "10 v1");
  EXPECT_EQ(driver_.query("bob", question).error().code, Errc::not_found);
}

TEST_F(EntityTest, TheTopicKeepsEverything) {
  const auto declared = factory_.declaration();
  EXPECT_EQ(declared.topic, "accounts");
  EXPECT_EQ(declared.partitions, 4);
  EXPECT_EQ(declared.settings.at("retention.ms"), "-1");
  EXPECT_EQ(declared.settings.at("cleanup.policy"), "delete");
}

TEST(EntityWithoutSnapshotsTest, ReadsAllEvents) {
  EntityFactory<Lamp> factory("lamps");
  AggregateDriver driver(factory);
  driver.send("hall", entity_command("on"));
  EXPECT_EQ(driver.take_snapshot().error().code, Errc::unsupported);
  ASSERT_TRUE(driver.reload());
  driver.send("hall", entity_command("on"));
  EXPECT_EQ(driver.log().size(), 1U);
}

}  // namespace
}  // namespace millrace
