#include "plugins/coordination/standalone/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::standalone {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class TreeTest : public ::testing::Test {
 protected:
  void put(const std::string& key) { apply({{.key = key, .value = ""}}); }
  void remove(const std::string& key) { apply({{.key = key, .value = std::nullopt}}); }
  void apply(const std::vector<Write>& writes) {
    auto planned = tree.plan(writes);
    ASSERT_TRUE(planned) << to_string(planned.error());
    tree.apply(planned->changes);
  }

  Tree tree;
};

TEST_F(TreeTest, AppliesTheWritesOfOneCommitInOrder) {
  const auto planned = tree.plan({{.key = "/a", .value = "one", .expected = must_not_exist},
                                  {.key = "/a", .value = "two", .expected = 0},
                                  {.key = "/b", .value = "x"},
                                  {.key = "/b", .value = std::nullopt}});
  ASSERT_TRUE(planned) << to_string(planned.error());
  EXPECT_THAT(planned->versions, ElementsAre(0, 1, 0, 0));
  tree.apply(planned->changes);
  EXPECT_EQ(tree.get("/a")->value, "two");
  EXPECT_FALSE(tree.get("/b"));
}

TEST_F(TreeTest, SaysWhatItExpectedAndFound) {
  put("/a");
  EXPECT_EQ(tree.plan({{.key = "/a", .value = "", .expected = 3}}).error().detail,
            "/a: expected version 3, found version 0");
  EXPECT_EQ(tree.plan({{.key = "/a", .value = "", .expected = must_not_exist}}).error().detail,
            "/a: expected no such key, found version 0");
  EXPECT_EQ(tree.plan({{.key = "/b", .value = "", .expected = 1}}).error().detail,
            "/b: expected version 1, found no such key");
}

TEST_F(TreeTest, ListsEachChildOnceAlsoWhereNamesBeginAlike) {
  for (const auto* key : {"/t/a", "/t/a-", "/t/a/x", "/t/a.b/y", "/ta"}) put(key);
  EXPECT_THAT(tree.children("/t"), ElementsAre("a", "a-", "a.b"));
  EXPECT_THAT(tree.children("/t/"), ElementsAre("a", "a-", "a.b"));
  EXPECT_THAT(tree.children("/"), ElementsAre("t", "ta"));
  EXPECT_THAT(tree.children("/t/a-"), IsEmpty());
}

TEST_F(TreeTest, SeesChangesAtAKeyAndBelowIt) {
  put("/t/a/x");
  const auto seen = tree.seen("/t/a");
  put("/t/b");
  EXPECT_EQ(tree.seen("/t/a"), seen);
  put("/t/a");
  EXPECT_NE(tree.seen("/t/a"), seen);
  const auto again = tree.seen("/t/a");
  remove("/t/a/x");
  EXPECT_NE(tree.seen("/t/a"), again);
}

TEST_F(TreeTest, SeesTheRemovalOfTheLastKeyBelow) {
  put("/t/a/x");
  put("/other");
  const auto seen = tree.seen("/t/a");
  remove("/t/a/x");
  EXPECT_NE(tree.seen("/t/a"), seen);
}

}  // namespace
}  // namespace millrace::standalone
