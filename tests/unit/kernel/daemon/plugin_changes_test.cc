#include "kernel/daemon/plugin_changes.h"

#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PluginChangesTest : public ::testing::Test {
 protected:
  PlannedPlugin plugin(std::string kind, std::string instance, const char* needs = "",
                       const char* provides = "") {
    auto& descriptor = descriptors_.emplace_back();
    descriptor.id = "org.example";
    descriptor.needs = needs;
    descriptor.provides = provides;
    PlannedPlugin planned{};
    planned.request = {std::move(kind), instance, instance, {}};
    planned.library.descriptor = &descriptor;
    return planned;
  }
  PluginChanges changes(const std::vector<PlannedPlugin>& wanted) {
    return plugin_changes(running_, wanted, [this](const PlannedPlugin& plugin) {
      return plugin.request.instance == needed_;
    });
  }
  static std::vector<std::string> names(const std::vector<PlannedPlugin>& plugins) {
    std::vector<std::string> names;
    for (const auto& plugin : plugins) names.push_back(name_of(plugin));
    return names;
  }

  std::deque<MillraceDescriptor> descriptors_;
  std::vector<PlannedPlugin> running_{plugin("compression", "gzip"), plugin("storage", "filelog"),
                                      plugin("operators", "consumer_groups", "", "groups/1"),
                                      plugin("transport", "kafka"), plugin("transport", "http")};
  std::string needed_ = "kafka";
};

TEST_F(PluginChangesTest, CodecsAndTransportsThatAreNewStart) {
  auto wanted = running_;
  wanted.insert(wanted.begin(), plugin("compression", "zstd"));
  wanted.push_back(plugin("transport", "inner.x"));
  const auto found = changes(wanted);
  EXPECT_THAT(names(found.starts), ElementsAre("compression/zstd", "transport/inner.x"));
  EXPECT_THAT(found.ends, IsEmpty());
  EXPECT_THAT(found.at_restart, IsEmpty());
  EXPECT_THAT(reloaded_keys(found),
              ElementsAre("compression.zstd.", "transport.\"inner.x\".", "compression.plugins"));
}

TEST_F(PluginChangesTest, ATransportThatIsGoneEndsUnlessItIsNeeded) {
  auto wanted = running_;
  wanted.resize(3);
  const auto found = changes(wanted);
  EXPECT_THAT(found.ends, ElementsAre("http"));
  EXPECT_THAT(found.at_restart, ElementsAre("plugin transport/kafka ends"));
  EXPECT_THAT(reloaded_keys(found), ElementsAre("transport.http.", "compression.plugins"));
}

TEST_F(PluginChangesTest, OtherKindsAndCodecsThatAreGoneWaitForAStart) {
  auto wanted = running_;
  wanted.erase(wanted.begin());
  wanted.insert(wanted.begin() + 1, plugin("operators", "service", "", "service/1"));
  const auto found = changes(wanted);
  EXPECT_THAT(found.starts, IsEmpty());
  EXPECT_THAT(found.at_restart,
              ElementsAre("plugin operators/service starts", "plugin compression/gzip ends"));
  EXPECT_THAT(reloaded_keys(found), IsEmpty());
}

TEST_F(PluginChangesTest, WhatNeedsAServiceThatWaitsWaitsAsWell) {
  auto wanted = running_;
  wanted.insert(wanted.begin() + 2, plugin("operators", "service", "", "service/1"));
  wanted.push_back(plugin("transport", "of_service", "service/1"));
  wanted.push_back(plugin("transport", "of_groups", "groups/1"));
  const auto found = changes(wanted);
  EXPECT_THAT(names(found.starts), ElementsAre("transport/of_groups"));
  EXPECT_THAT(found.at_restart,
              ElementsAre("plugin operators/service starts", "plugin transport/of_service starts"));
}

TEST_F(PluginChangesTest, AnotherPluginOrAnotherFileWaits) {
  auto wanted = running_;
  wanted[0] = plugin("compression", "gzip");  // mapped anew
  wanted[4].request.plugin = "rest";
  const auto found = changes(wanted);
  EXPECT_THAT(found.starts, IsEmpty());
  EXPECT_THAT(found.at_restart, ElementsAre("plugin compression/gzip has another file",
                                            "plugin transport/http is rest"));
}

}  // namespace
}  // namespace millrace::kernel
