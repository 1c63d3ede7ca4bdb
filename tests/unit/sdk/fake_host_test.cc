#include <millrace/testing/fake_host.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/testing/sim_environment.h>

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

constexpr MillraceOption declared[] = {
    {"text", MILLRACE_OPTION_TEXT, nullptr, "a b", 1, 0, nullptr, "", 0},
    {"bytes", MILLRACE_OPTION_INTEGER, "bytes", "1024", 1, 0, nullptr, "", 0},
    {"share", MILLRACE_OPTION_NUMBER, nullptr, "0.25", 1, 0, nullptr, "", 0},
    {"on", MILLRACE_OPTION_BOOLEAN, nullptr, "true", 1, 0, nullptr, "", 0},
    {"list", MILLRACE_OPTION_TEXTS, nullptr, "a, b", 1, 0, nullptr, "", 0},
    {"unset", MILLRACE_OPTION_TEXT, nullptr, nullptr, 1, 0, nullptr, "", 0},
    {nullptr, 0, nullptr, nullptr, 0, 0, nullptr, nullptr, 0}};

TEST(FakeHostTest, FillsInDeclaredDefaults) {
  const Options options(defaults_of(declared));
  EXPECT_EQ(options.text("text"), "a b");
  EXPECT_EQ(options.integer("bytes"), 1024);
  EXPECT_EQ(options.number("share"), 0.25);
  EXPECT_TRUE(options.boolean("on"));
  EXPECT_EQ(options.texts("list"), (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(options.has("unset"));
}

TEST(FakeHostTest, KeepsLinesAndCounts) {
  SimWorld world(1);
  FakeHost host(world.add_node("b1"), {}, {{"broker.data", "/data"}});
  host.log().warning("cut a torn tail", {{"bytes", 12}});
  EXPECT_EQ(host.kept_log().lines(),
            std::vector<std::string>{"warning test: cut a torn tail bytes=12"});
  EXPECT_TRUE(host.kept_log().contains("bytes=12"));
  host.metrics().counter("millrace_x", "").add(2);
  EXPECT_EQ(host.metrics().counter("millrace_x", "").value(), 2U);
  EXPECT_EQ(host.setting("broker.data"), "/data");
  EXPECT_EQ(host.setting("broker.id"), "");
}

TEST(FakeHostTest, SaysWhyALibraryCannotBeLoaded) {
  SimWorld world(1);
  auto& node = world.add_node("b1");
  const auto missing = load_plugin("/nowhere/x.so", node);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().detail, HasSubstr("/nowhere/x.so"));
  const auto other = load_plugin("libm.so.6", node);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().detail, HasSubstr("exports no millrace_plugin_v1"));
}

}  // namespace
}  // namespace millrace::testing
