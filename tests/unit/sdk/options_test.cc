#include <millrace/options.h>

#include <gtest/gtest.h>

namespace millrace {
namespace {

const Options options({{"name", std::string("x")},
                       {"count", std::int64_t{3}},
                       {"on", true},
                       {"ratio", 0.5},
                       {"list", std::vector<std::string>{"a", "b"}}});

TEST(OptionsTest, GivesEachTypeItsValue) {
  EXPECT_EQ(options.text("name"), "x");
  EXPECT_EQ(options.integer("count"), 3);
  EXPECT_TRUE(options.boolean("on"));
  EXPECT_EQ(options.number("ratio"), 0.5);
  EXPECT_EQ(options.texts("list").size(), 2U);
  EXPECT_TRUE(options.has("name"));
  EXPECT_FALSE(options.has("other"));
}

TEST(OptionsDeathTest, EndsTheProcessForAnUndeclaredNameOrAnotherType) {
  EXPECT_DEATH(static_cast<void>(options.text("other")), "assertion failed");
  EXPECT_DEATH(static_cast<void>(options.integer("name")), "assertion failed");
}

}  // namespace
}  // namespace millrace
