#include "kernel/daemon/plan_remarks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PlanRemarksTest, AFolderOfPluginsThatIsNotThereIsNamedWithItsPlace) {
  Plan plan{};
  plan.plugin_folders = {"/", "/no/such/folder", "/dev/null"};
  plan.settings = {{"plugins.path", "[…]", "m.toml:3:1"}};
  EXPECT_THAT(warnings_of(plan),
              ElementsAre("m.toml:3:1: plugins.path: there is no folder /no/such/folder; expected "
                          "one with KIND/NAME.so in it",
                          "m.toml:3:1: plugins.path: this is no folder: /dev/null; expected one "
                          "with KIND/NAME.so in it"));
  plan.plugin_folders = {""};
  EXPECT_THAT(warnings_of(plan),
              ElementsAre("m.toml:3:1: plugins.path: there is no folder \"\"; expected one with "
                          "KIND/NAME.so in it"));
  plan.plugin_folders = {"/"};
  EXPECT_THAT(warnings_of(plan), IsEmpty());
}

TEST(PlanRemarksTest, WhoseTransportsAreOthersHasNoAdmin) {
  Plan plan{};
  const auto add = [&plan](const char* kind, const char* instance, const char* plugin) {
    plan.plugins.push_back({{kind, instance, plugin, {}}, {}, {}, {}});
  };
  add("transport", "kafka", "kafka");
  EXPECT_TRUE(has_no_admin(plan));
  add("transport", "ops", "http");
  EXPECT_FALSE(has_no_admin(plan));
}

}  // namespace
}  // namespace millrace::kernel
