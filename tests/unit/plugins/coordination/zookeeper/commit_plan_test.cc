#include "plugins/coordination/zookeeper/commit_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::zookeeper {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t us = 7;
constexpr std::int64_t others = 8;

Known folder(std::int32_t children, std::int32_t version = 0) {
  return {.there = true, .folder = true, .version = version, .children = children};
}
Known key(std::int32_t version, std::int32_t children = 0, std::int64_t owner = 0) {
  return {.there = true, .owner = owner, .version = version, .children = children};
}

// "create /a", "set /a 3 folder", "remove /a 0".
std::vector<std::string> words_of(const CommitPlan& plan) {
  std::vector<std::string> words;
  for (const auto& op : plan.ops) {
    std::string text;
    switch (op.kind) {
      case Op::Kind::create: text = "create " + op.path; break;
      case Op::Kind::set: text = "set " + op.path + " " + std::to_string(op.version); break;
      case Op::Kind::remove: text = "remove " + op.path + " " + std::to_string(op.version); break;
    }
    if (op.kind != Op::Kind::remove && !op.value) text += " folder";
    if (op.ephemeral) text += " ephemeral";
    words.push_back(std::move(text));
  }
  return words;
}

std::vector<std::string> planned(const std::vector<Write>& writes, const KnownNodes& known) {
  const auto plan = plan_commit(writes, known, us);
  if (!plan) return {to_string(plan.error())};
  return words_of(*plan);
}

TEST(CommitPlanTest, NeedsToKnowKeysAndThenWhatIsAboveThem) {
  const std::vector<Write> writes{
      {.key = "/a/b/c"}, {.key = "/a/b/d", .value = "x"}, {.key = "not a path"}};
  EXPECT_THAT(unknown_nodes(writes, {}), ElementsAre("/a/b/c", "/a/b/d"));
  const KnownNodes keys{{"/a/b/c", key(0)}, {"/a/b/d", {}}};
  EXPECT_THAT(unknown_nodes(writes, keys), ElementsAre("/a", "/a/b"));
  auto all = keys;
  all["/a"] = all["/a/b"] = folder(1);
  EXPECT_THAT(unknown_nodes(writes, all), ElementsAre());
}

// A leader's in-sync sets are thousands of them.
TEST(CommitPlanTest, NeedsToKnowNothingAboveAKeyThatGetsAnotherValue) {
  const std::vector<Write> writes{{.key = "/a/b", .value = "x", .expected = 4}};
  EXPECT_THAT(unknown_nodes(writes, {{"/a/b", key(4)}}), ElementsAre());
  EXPECT_THAT(planned(writes, {{"/a/b", key(4)}}), ElementsAre("set /a/b 4"));
  EXPECT_THAT(unknown_nodes(writes, {{"/a/b", key(4, 0, us)}}), ElementsAre("/a"))
      << "it is made anew, to stay";
}

TEST(CommitPlanTest, MakesFoldersAboveANewKeyOnce) {
  EXPECT_THAT(planned({{.key = "/a/b/c", .value = "1"}, {.key = "/a/b/d", .value = "2"}},
                      {{"/a", folder(0)}}),
              ElementsAre("create /a/b folder", "create /a/b/c", "create /a/b/d"));
}

TEST(CommitPlanTest, WritesOverTheVersionThatWasRead) {
  const auto plan = plan_commit({{.key = "/a", .value = "x"}}, {{"/a", key(4)}}, us);
  ASSERT_TRUE(plan);
  EXPECT_THAT(words_of(*plan), ElementsAre("set /a 4"));
  EXPECT_THAT(plan->versions, ElementsAre(5));
}

TEST(CommitPlanTest, MakesAKeyOfAFolder) {
  EXPECT_THAT(
      planned({{.key = "/a", .value = "x", .expected = must_not_exist}}, {{"/a", folder(2, 3)}}),
      ElementsAre("set /a 3"));
}

TEST(CommitPlanTest, MakesAKeyAnewThatGoesWithAnotherLease) {
  EXPECT_THAT(planned({{.key = "/a", .value = "x", .ephemeral = true}}, {{"/a", key(4)}}),
              ElementsAre("remove /a 4", "create /a ephemeral"));
  EXPECT_THAT(
      planned({{.key = "/a", .value = "x", .ephemeral = true}}, {{"/a", key(4, 0, others)}}),
      ElementsAre("remove /a 4", "create /a ephemeral"));
  EXPECT_THAT(planned({{.key = "/a", .value = "x"}}, {{"/a", key(4, 0, us)}}),
              ElementsAre("remove /a 4", "create /a"));
  EXPECT_THAT(planned({{.key = "/a", .value = "x", .ephemeral = true}}, {{"/a", key(4, 0, us)}}),
              ElementsAre("set /a 4"));
}

TEST(CommitPlanTest, RemovesFoldersThatBecomeEmptyBelowTheSecondLevel) {
  const KnownNodes known{{"/b", folder(1)},
                         {"/b/t", folder(1)},
                         {"/b/t/x", key(1, 1)},
                         {"/b/t/x/p", folder(1)},
                         {"/b/t/x/p/0", key(2)}};
  EXPECT_THAT(planned({{.key = "/b/t/x/p/0"}}, known),
              ElementsAre("remove /b/t/x/p/0 2", "remove /b/t/x/p 0"));
  EXPECT_THAT(planned({{.key = "/b/t/x/p/0"}, {.key = "/b/t/x"}}, known),
              ElementsAre("remove /b/t/x/p/0 2", "remove /b/t/x/p 0", "remove /b/t/x 1"));
  EXPECT_THAT(planned({{.key = "/b/t/x"}}, known), ElementsAre("set /b/t/x 1 folder"));
  EXPECT_THAT(planned({{.key = "/b/t/x"}, {.key = "/b/t/x/p/0"}}, known),
              ElementsAre("set /b/t/x 1 folder", "remove /b/t/x/p/0 2", "remove /b/t/x/p 0",
                          "remove /b/t/x 2"));
}

TEST(CommitPlanTest, RefusesWhatIsNotAsExpected) {
  const auto code = [](Write write, const KnownNodes& known) {
    const auto plan = plan_commit({std::move(write)}, known, us);
    return plan ? Errc::ok : plan.error().code;
  };
  EXPECT_EQ(code({.key = "/a", .value = "x", .expected = 3}, {{"/a", key(4)}}), Errc::conflict);
  EXPECT_EQ(code({.key = "/a", .value = "x", .expected = 0}, {{"/a", folder(1)}}), Errc::conflict);
  EXPECT_EQ(code({.key = "/a", .value = "x", .expected = must_not_exist}, {{"/a", key(0)}}),
            Errc::conflict);
  EXPECT_EQ(code({.key = "/a"}, {{"/a", folder(1)}}), Errc::not_found);
  EXPECT_EQ(code({.key = "/a", .value = "x", .ephemeral = true}, {{"/a", key(0, 1)}}),
            Errc::invalid_argument);
  EXPECT_EQ(code({.key = "/a/b", .value = "x"}, {{"/a", key(0, 0, others)}}),
            Errc::invalid_argument);
  EXPECT_EQ(code({.key = "/a//b", .value = "x"}, {}), Errc::invalid_argument);
}

}  // namespace
}  // namespace millrace::zookeeper
