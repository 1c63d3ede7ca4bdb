// Many topics at once: made, erased, and read by who is elected next.
#include <algorithm>
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/kernel/cluster/controller_fixture.h"

namespace millrace::kernel {
namespace {

using std::chrono::seconds;

constexpr std::size_t large = 3000;  // partitions whose keys are more than one commit takes

class ControllerTopicsTest : public ControllerFixture {
 protected:
  static TopicState topic(const std::string& name, std::size_t partitions) {
    TopicState state;
    state.name = name;
    for (std::size_t at = 0; at < std::min<std::size_t>(name.size(), 16); ++at) {
      state.id.bytes[at] = static_cast<std::uint8_t>(name[at]);
    }
    for (std::size_t at = 0; at < partitions; ++at) {
      state.partitions.push_back({.leader = 1, .replicas = {1, 2}, .in_sync = {1, 2}});
    }
    return state;
  }
  static std::vector<TopicState> topics(int count) {
    std::vector<TopicState> some;
    for (int n = 0; n < count; ++n) some.push_back(topic("t" + std::to_string(n), 3));
    return some;
  }
  static Task<TopicsChanged> add_together(Controller& controller, std::vector<TopicState> wanted) {
    MR_CO_TRY(const auto turn, co_await controller.turn());
    auto adding = controller.add_topics(std::move(wanted));
    co_return co_await std::move(adding);
  }
  std::vector<Result<>> add_all(Member& on, std::vector<TopicState> wanted) {
    const auto added = run(on, [&] { return add_together(*on.controller, wanted); });
    EXPECT_TRUE(added) << to_string(added.error());
    return added ? added->each : std::vector<Result<>>();
  }
  // As TopicAdmin does it.
  static Task<> erase_all(Controller& controller, std::vector<std::string> names) {
    UpdateSender::Moment moment = 0;
    {
      MR_CO_TRY(const auto turn, co_await controller.turn());
      auto erasing = controller.erase_topics(names);
      MR_CO_TRY(const auto erased, co_await std::move(erasing));
      for (const auto& one : erased.each) MR_CO_CHECK(one);
      moment = erased.moment;
    }
    MR_CO_CHECK(co_await controller.told(moment));
    for (const auto& name : names) MR_CO_CHECK(co_await controller.erased(name));
    co_return {};
  }
};

TEST_F(ControllerTopicsTest, ManyAreMadeAndErasedInFewCommitsAndUpdates) {
  auto& first = start(1);
  start(2);
  auto wanted = topics(200);
  wanted.insert(wanted.begin() + 7, topic("large", large));
  std::vector<std::string> names;
  for (const auto& one : wanted) names.push_back(one.name);
  const auto commits = first.coordination->commits;
  const auto asked = brokers_.asked[2];
  const auto added = add_all(first, std::move(wanted));
  ASSERT_EQ(added.size(), 201);
  for (const auto& one : added) EXPECT_TRUE(one) << to_string(one.error());
  EXPECT_LE(first.coordination->commits - commits, 5) << "of the large one's alone there are three";
  world_.run_for(seconds(1));
  EXPECT_LE(brokers_.asked[2] - asked, 3);
  EXPECT_EQ(told(2, "large")->leader, 1);
  EXPECT_EQ(told(2, "t199")->leader, 1);

  const auto before = first.coordination->commits;
  const auto erased = run(first, [&] { return erase_all(*first.controller, names); });
  ASSERT_TRUE(erased) << to_string(erased.error());
  EXPECT_LE(first.coordination->commits - before, 6);
  const auto left = run(first, [&] { return first.coordination->list("/brokers/topics"); });
  EXPECT_TRUE(good(left).empty());
  const auto marks = run(first, [&] { return first.coordination->list("/admin/delete_topics"); });
  EXPECT_TRUE(good(marks).empty());
}

TEST_F(ControllerTopicsTest, OneThatCannotBeWrittenHoldsUpNoOther) {
  auto& first = start(1);
  first.coordination->failing = znodes::topic("broken");
  auto wanted = topics(3);
  wanted[1].name = "broken";
  const auto added = add_all(first, std::move(wanted));
  ASSERT_EQ(added.size(), 3);
  EXPECT_TRUE(added[0]);
  ASSERT_FALSE(added[1]);
  EXPECT_EQ(added[1].error().code, Errc::io);
  EXPECT_TRUE(added[2]);
  EXPECT_EQ(first.controller->state().topics.size(), 2);

  first.coordination->failing = znodes::delete_topic("t2");
  EXPECT_FALSE(run(first, [&] { return erase_all(*first.controller, {"t0", "t2"}); }));
  EXPECT_FALSE(first.controller->state().find("t0"));
  EXPECT_TRUE(first.controller->state().find("t2"));
  EXPECT_TRUE(first.controller->active());
}

TEST_F(ControllerTopicsTest, WhoIsElectedNextReadsManyAtATime) {
  auto& first = start(1);
  auto& second = start(2);
  for (const auto& one : add_all(first, topics(300))) EXPECT_TRUE(one);
  const auto rounds = second.coordination->rounds;
  die(first);
  ASSERT_TRUE(second.controller->active());
  EXPECT_EQ(second.controller->state().topics.size(), 300);
  EXPECT_LE(second.coordination->rounds - rounds, 30) << "there are 1,500 keys";
}

}  // namespace
}  // namespace millrace::kernel
