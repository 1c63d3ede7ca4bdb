// What one broker is asked to replace, at three that agree through one coordination.
#include "kernel/streams/replacements.h"

#include <array>
#include <memory>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_coordination.h>
#include <millrace/testing/sim_environment.h>

#include "kernel/cluster/znodes.h"

namespace millrace::kernel {

void PrintTo(const ReplacedAt& one, std::ostream* out) {
  *out << one.broker << (one.refused.empty() ? "" : ": ") << one.refused;
}

namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What a broker is like, and what it has done.
struct Broker {
  testing::SimEnvironment* node = nullptr;
  std::unique_ptr<Coordination> coordination;
  std::unique_ptr<Lease> lease;
  testing::KeptLog log;
  std::unique_ptr<ReplacementService> service;
  std::string content = "new";  // of every file; empty: it has none
  std::string refuses;          // why
  Duration takes{};
  std::vector<std::string> replaced;
  std::vector<std::string> remembered;
};

Task<> replace_at(Broker& broker, Replacement wanted) {
  if (broker.takes > Duration::zero()) MR_CO_CHECK(co_await sleep(broker.takes));
  if (!broker.refuses.empty()) co_return Error{Errc::invalid_argument, broker.refuses};
  broker.replaced.push_back(wanted.name + (wanted.step ? "/" + *wanted.step : "") + " " +
                            wanted.file);
  co_return {};
}

Task<> remember_at(Broker& broker, std::string stream) {
  broker.remembered.push_back(std::move(stream));
  co_return {};
}

Task<> join(Broker& broker, std::int32_t id) {
  MR_CO_TRY(broker.lease, co_await broker.coordination->join({id}));
  std::vector<Write> writes;
  writes.push_back({.key = znodes::broker(id), .value = "{}", .ephemeral = true});
  MR_CO_CHECK(co_await broker.coordination->commit(std::move(writes)));
  co_return {};
}

auto at(std::int32_t broker, const std::string& refused = {}) {
  return AllOf(Field(&ReplacedAt::broker, broker), Field(&ReplacedAt::refused, refused));
}

class ReplacementsTest : public ::testing::Test {
 public:
  ~ReplacementsTest() override {
    for (std::size_t number = 1; number <= brokers_.size(); ++number) end(number);
  }

 protected:
  using Replaced = Result<std::vector<ReplacedAt>>;

  /// Brokers 1 to `count`.
  void start(std::size_t count = 3) {
    for (std::size_t number = 1; number <= count; ++number) {
      const auto id = static_cast<std::int32_t>(number);
      auto& broker = of(number);
      broker.node = &world_.add_node("b" + std::to_string(number));
      broker.coordination = service_.connect(*broker.node);
      ASSERT_TRUE(world_.run(broker.node->control(), [&broker, id] { return join(broker, id); }));
      LocalReplacements local;
      local.content = [&broker](const std::string& file) -> Result<std::string> {
        if (!broker.content.empty()) return broker.content;
        return Error{Errc::invalid_argument, file + ": there is no such file"};
      };
      local.replace = [&broker](const Replacement& wanted) { return replace_at(broker, wanted); };
      local.remember = [&broker](const std::string& stream) { return remember_at(broker, stream); };
      broker.service = std::make_unique<ReplacementService>(*broker.node, *broker.coordination,
                                                            broker.log, id, std::move(local));
      broker.node->control().post([&broker] { broker.service->open(); });
    }
    world_.run_for(seconds(1));
  }
  void end(std::size_t number) {
    auto& broker = of(number);
    if (!broker.service) return;
    const auto closed = world_.run(broker.node->control(), [&] { return broker.service->close(); });
    EXPECT_TRUE(closed) << to_string(closed.error());
    broker.service.reset();
    broker.coordination.reset();
  }

  std::shared_ptr<std::optional<Replaced>> begin(std::size_t number) {
    auto result = std::make_shared<std::optional<Replaced>>();
    auto& home = *of(number).node->shards()[0];
    home.post([this, &home, result, number] {
      auto body = [](ReplacementService& service,
                     std::shared_ptr<std::optional<Replaced>> into) -> Task<> {
        auto replaced = co_await service.replace_operator("clean", "filter", "/f.so");
        into->emplace(std::move(replaced));
        co_return {};
      };
      spawn(home, body(*of(number).service, result), "replace");
    });
    return result;
  }
  /// Asked at that broker.
  Replaced replace(std::size_t number, Duration limit = minutes(5)) {
    const auto result = begin(number);
    if (!world_.run_until([&result] { return result->has_value(); }, limit)) {
      return Error{Errc::timed_out, "it does not end"};
    }
    return **result;
  }
  Broker& of(std::size_t number) { return brokers_.at(number - 1); }

  testing::SimWorld world_{3};
  testing::SimCoordination service_{world_};
  std::array<Broker, 3> brokers_;
};

TEST_F(ReplacementsTest, EveryBrokerDoesWhatOneIsAskedAndThatOneRemembersIt) {
  start();
  const auto told = replace(2);
  ASSERT_TRUE(told) << to_string(told.error());
  EXPECT_THAT(*told, ElementsAre(at(1), at(2), at(3)));
  EXPECT_THAT(of(1).replaced, ElementsAre("clean/filter /f.so"));
  EXPECT_THAT(of(2).replaced, ElementsAre("clean/filter /f.so"));
  EXPECT_THAT(of(1).remembered, IsEmpty());
  EXPECT_THAT(of(2).remembered, ElementsAre("clean"));
  EXPECT_THAT(of(3).replaced, ElementsAre("clean/filter /f.so"));
  // Once, and again when it is asked for again, anywhere.
  world_.run_for(minutes(1));
  ASSERT_TRUE(replace(3));
  EXPECT_EQ(of(1).replaced.size(), 2);
  EXPECT_EQ(of(2).replaced.size(), 2);
}

TEST_F(ReplacementsTest, AnAggregateHasNoStep) {
  start();
  auto& asked = of(1);
  const auto told = world_.run(*asked.node->shards()[0], [&asked] {
    return asked.service->replace_aggregate("accounts", "/bank.so");
  });
  ASSERT_TRUE(told) << to_string(told.error());
  EXPECT_THAT(of(3).replaced, ElementsAre("accounts /bank.so"));
  EXPECT_THAT(of(1).remembered, IsEmpty());
}

TEST_F(ReplacementsTest, WhoCannotIsNamedAndTheOthersHaveDoneItUntilTheyRestart) {
  start();
  of(2).content = "";
  of(3).refuses = "it has no such step: \xff";
  const auto told = replace(1);
  ASSERT_TRUE(told) << to_string(told.error());
  EXPECT_THAT(*told, ElementsAre(at(1), at(2, "/f.so: there is no such file"),
                                 at(3, "it has no such step: \xef\xbf\xbd")));
  EXPECT_THAT(of(2).replaced, IsEmpty());
  EXPECT_TRUE(of(1).log.contains("was not at another broker"));
  EXPECT_THAT(of(1).remembered, IsEmpty()) << "a restart of broker 2 would not find it";
}

TEST_F(ReplacementsTest, AnotherFileUnderItsNameIsRefused) {
  start();
  of(3).content = "old";
  const auto told = replace(1);
  ASSERT_TRUE(told) << to_string(told.error());
  EXPECT_THAT(*told,
              ElementsAre(at(1), at(2), at(3, "/f.so: it is another file than that of broker 1")));
  EXPECT_THAT(of(3).replaced, IsEmpty());
}

TEST_F(ReplacementsTest, WhatFailsHereIsAskedOfNobodyElse) {
  start();
  of(1).refuses = "/f.so: not an ELF file";
  const auto refused = replace(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  EXPECT_EQ(refused.error().detail, "/f.so: not an ELF file; other brokers were not asked");
  world_.run_for(seconds(10));
  EXPECT_THAT(of(2).replaced, IsEmpty());
  EXPECT_TRUE(replace(2)) << "it is over";
}

TEST_F(ReplacementsTest, WhoIsAloneDoesItAlone) {
  start(1);
  const auto told = replace(1);
  ASSERT_TRUE(told) << to_string(told.error());
  EXPECT_THAT(*told, ElementsAre(at(1)));
  EXPECT_THAT(of(1).remembered, ElementsAre("clean"));
  of(1).refuses = "no";
  EXPECT_EQ(replace(1).error().detail, "no");
}

TEST_F(ReplacementsTest, WhoIsGoneMeanwhileIsWaitedForNoLonger) {
  start();
  of(3).takes = hours(1);
  const auto result = begin(1);
  world_.run_for(seconds(2));
  service_.cut_off(*of(3).node);
  ASSERT_TRUE(world_.run_until([&result] { return result->has_value(); }, seconds(30)));
  ASSERT_TRUE(**result) << to_string((*result)->error());
  EXPECT_THAT(***result, ElementsAre(at(1), at(2), at(3, "it is not in the cluster any more")));
  service_.reach(*of(3).node);
  of(3).takes = {};
  world_.run_for(hours(2));
}

TEST_F(ReplacementsTest, WhoDoesNotAnswerIsNotWaitedForForEver) {
  start();
  of(2).takes = hours(1);
  const auto told = replace(1);
  ASSERT_TRUE(told) << to_string(told.error());
  EXPECT_THAT(*told, ElementsAre(at(1), at(2, "it has not answered within 90 s"), at(3)));
  world_.run_for(hours(2));
}

TEST_F(ReplacementsTest, OneBrokerIsAskedAtATime) {
  start();
  of(1).takes = seconds(5);
  const auto first = begin(1);
  world_.run_for(seconds(1));
  const auto second = replace(2);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::conflict);
  EXPECT_THAT(second.error().detail, HasSubstr("broker 1 is asked to replace something"));
  EXPECT_THAT(of(2).replaced, IsEmpty());
  ASSERT_TRUE(world_.run_until([&first] { return first->has_value(); }, minutes(1)));
  ASSERT_TRUE(**first);
  EXPECT_TRUE(replace(2));
}

TEST_F(ReplacementsTest, WhoDiesWhileItIsAskedIsInNobodysWay) {
  start();
  of(1).takes = seconds(5);
  begin(1);
  world_.run_for(seconds(1));
  service_.cut_off(*of(1).node);
  world_.run_for(seconds(30));
  const auto told = replace(2);
  ASSERT_TRUE(told) << to_string(told.error());
  EXPECT_THAT(*told, ElementsAre(at(2), at(3)));
}

TEST_F(ReplacementsTest, AStopDoesNotWaitForOthersOrForACoordinationThatIsAway) {
  start();
  of(2).takes = hours(1);
  const auto result = begin(1);
  world_.run_for(seconds(2));
  service_.stop();
  end(1);
  EXPECT_TRUE(world_.run_until([&result] { return result->has_value(); }, seconds(1)));
  service_.go_on();
  world_.run_for(hours(2));
}

}  // namespace
}  // namespace millrace::kernel
