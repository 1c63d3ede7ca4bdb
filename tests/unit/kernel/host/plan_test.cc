#include "kernel/host/plan.h"

#include "host_fixture.h"

namespace millrace::kernel {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const std::string silent = "[coordination]\nplugin = \"silent\"\n[storage]\nplugin = \"silent\"\n";

std::string with_codecs(const std::string& codecs) {
  return silent + "[compression]\nplugins = [" + codecs +
         "]\n[transport.quiet]\nlisten = \"here\"\n[operators]\nplugins = []\n";
}

std::vector<std::string> problems(const std::string& text) {
  const auto plan = plan_of(text);
  return plan ? std::vector<std::string>{} : lines_of(plan.error());
}

TEST(PlanTest, PluginsStandInTheOrderOfTheirStart) {
  const auto plan = plan_of(with_codecs("\"after_echo\", \"echo\""));
  ASSERT_TRUE(plan) << to_error(plan.error()).detail;
  std::vector<std::string> order;
  for (const auto& plugin : plan->plugins) order.emplace_back(plugin.library.descriptor->id);
  EXPECT_THAT(order,
              ElementsAre("org.example.compression.echo", "org.example.compression.after_echo",
                          "org.example.coordination.silent", "org.example.storage.silent",
                          "org.millrace.transport.quiet"));
  EXPECT_EQ(plan->plugins[0].options.integer("level"), 3);
  EXPECT_EQ(plan->plugins[4].options.text("listen"), "here");
}

TEST(PlanTest, OptionsStayWithTheirPluginWhateverTheOrder) {
  const auto plan = plan_of(with_codecs("\"after_echo\", \"echo\"") +
                            "[compression.after_echo]\nlevel = 8\n[compression.echo]\nlevel = 2\n");
  ASSERT_TRUE(plan) << to_error(plan.error()).detail;
  EXPECT_EQ(plan->plugins[0].options.integer("level"), 2);
  EXPECT_EQ(plan->plugins[1].options.integer("level"), 8);
}

TEST(PlanTest, RefusesTwoPluginsOfOneId) {
  EXPECT_THAT(
      problems(with_codecs("\"echo\", \"echo_twin\"")),
      ElementsAre("millrace.toml:6:11: " + good_plugin("echo") + " and " +
                  good_plugin("echo_twin") +
                  ": both have the id org.example.compression.echo; remove one, or name only one "
                  "in the configuration"));
}

TEST(PlanTest, RefusesNeedsThatNobodyProvides) {
  EXPECT_THAT(problems(with_codecs("\"after_echo\"")),
              ElementsAre("millrace.toml:6:11: org.example.compression.after_echo: needs "
                          "org.example.echo/1, which no plugin that starts before it provides",
                          "millrace.toml:7:12: org.millrace.transport.quiet: needs "
                          "org.example.echo/1, which no plugin that starts before it provides"));
}

TEST(PlanTest, RefusesPluginsThatNeedEachOther) {
  EXPECT_THAT(problems(with_codecs("\"echo\", \"ring_a\", \"ring_b\"")),
              ElementsAre("millrace.toml:6:11: org.example.compression.ring_a: needs "
                          "org.example.ring_b/1, which no plugin that starts before it provides",
                          "millrace.toml:6:11: org.example.compression.ring_b: needs "
                          "org.example.ring_a/1, which no plugin that starts before it provides"));
}

TEST(PlanTest, AMissingPluginIsReportedWhereItIsNamed) {
  const auto lines = problems(
      "[coordination]\nplugin = \"silent\"\n[storage]\nplugin = "
      "\"silnt\"\n[compression]\nplugins = [\"echo\"]\n[transport.quiet]\n"
      "listen = \"here\"\n");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], AllOf(StartsWith("millrace.toml:4:10: no plugin storage/silnt.so in "),
                              HasSubstr("; nearest known: silent; storage plugins found: ")));
}

TEST(PlanTest, APluginInTheFolderOfAnotherKindIsRefused) {
  const TemporaryFolder folder;
  const auto path = folder.copy(good_plugin("echo"), "storage/echo.so");
  const auto plan = plan_of("storage.plugin = \"echo\"\n", folder.path());
  ASSERT_FALSE(plan);
  EXPECT_THAT(lines_of(plan.error()),
              testing::Contains("millrace.toml:1:18: " + path +
                                ": a compression plugin, expected a storage plugin; name it in the "
                                "table of its kind and keep it in compression/"));
}

TEST(PlanTest, RefusedPluginsAndWrongKeysAreReportedTogether) {
  EXPECT_THAT(problems(silent + "[compression]\nplugins = [\"echo\"]\n[transport.quiet]\n"
                                "[transport.loud]\n[compression.echo]\nlevel = 99\n"),
              ElementsAre("millrace.toml:7:12: [transport.quiet] needs listen: a text",
                          StartsWith("millrace.toml:8:12: no plugin transport/loud.so in "),
                          "millrace.toml:10:9: compression.echo.level: expected an integer from 1 "
                          "to 9, found integer 99"));
}

}  // namespace
}  // namespace millrace::kernel
