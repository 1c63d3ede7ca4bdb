#include "kernel/cli/reference.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/cli/program.h"
#include "kernel/cli/reference_pages.h"

namespace millrace::kernel::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string page(std::string_view name) {
  auto text = manual_page(name);
  EXPECT_TRUE(text) << name;
  return text ? *text : "";
}

TEST(ReferenceTest, AVerbsPageTellsItsArgumentsDefaultsAndExamples) {
  const auto text = page("millrace-topic");
  EXPECT_THAT(text, StartsWith("# millrace-topic(1): create, list, describe"));
  EXPECT_THAT(text, HasSubstr("**millrace topic create** \\[*OPTION*...\\] *NAME*\n"));
  EXPECT_THAT(text, HasSubstr("**--before** *OFFSET\\|end*"));
  EXPECT_THAT(text, HasSubstr("**--config** *KEY=VALUE*\n\n:   a setting of the topic; may be"));
  EXPECT_THAT(text, HasSubstr("**-b**, **--bootstrap** *HOST:PORT*\n\n:   any broker of the "));
  EXPECT_THAT(text, HasSubstr("; default: 127.0.0.1:9092\n"));
  EXPECT_THAT(text, HasSubstr("## EXAMPLES\n\n```sh\nmillrace topic create "));
}

TEST(ReferenceTest, OneOfSeveralOptionsIsToldAsSuch) {
  const auto text = page("millrace-config");
  EXPECT_THAT(text, HasSubstr("**millrace config get** (**--topic** *NAME* | **--broker** "));
  EXPECT_THAT(text, HasSubstr("Exactly one of these:\n\n**--topic** *NAME*"));
}

TEST(ReferenceTest, TheToolsPageHasItsVerbsAndExitCodes) {
  const auto text = page("millrace");
  EXPECT_THAT(text, HasSubstr("[**millrace-group**](millrace-group.md)(1)\n\n:   list, describe"));
  EXPECT_THAT(text, HasSubstr("## EXIT STATUS\n\n**0**\n\n:   done\n"));
  EXPECT_THAT(text, HasSubstr("[**millraced**](millraced.md)(8)"));
}

TEST(ReferenceTest, TheDaemonsPageHasItsOptions) {
  EXPECT_THAT(page("millraced"), HasSubstr("**--config** *FILE*\n\n:   the TOML file"));
}

TEST(ReferenceTest, TheConfigurationsPageTellsBoundsDefaultsAndWhatIsReloadable) {
  const auto text = page("millrace.toml");
  EXPECT_THAT(text, HasSubstr("### \\[broker\\]\n"));
  EXPECT_THAT(text, HasSubstr("**shards**\n\n:   Threads that own connections"));
  EXPECT_THAT(text, HasSubstr("an integer from 0 to 256; default: 0\n"));
  EXPECT_THAT(text, HasSubstr("; default: info; *reloadable*\n"));
  EXPECT_THAT(text, HasSubstr("**retention.ms**\n\n"));
  EXPECT_THAT(text, HasSubstr("inherits log.retention.ms, "));
  EXPECT_THAT(text, HasSubstr("**consumer.session.timeout.ms**"));
}

TEST(ReferenceTest, EachPageOfTheListIsThere) {
  for (const auto& [name, section] : manual_pages()) {
    if (name == "millrace.toml") continue;  // above; it loads all plugins
    EXPECT_THAT(page(name), StartsWith("# " + name + "(" + std::to_string(section) + "): "));
  }
  EXPECT_EQ(manual_page("millrace-nonsense").error().code, Errc::not_found);
}

TEST(ReferenceTest, MarksOfMarkdownAreShownAsTheyStand) {
  EXPECT_EQ(markdown_text("a*b <c> d_e|f"), "a\\*b \\<c\\> d\\_e\\|f");
}

}  // namespace
}  // namespace millrace::kernel::cli
