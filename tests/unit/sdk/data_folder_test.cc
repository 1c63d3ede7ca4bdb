#include <millrace/data_folder.h>

#include <string>

#include <gtest/gtest.h>

#include <millrace/testing/sim_environment.h>

namespace millrace {
namespace {

bool survives_power_cut(std::uint64_t seed, const std::string& before, const std::string& path) {
  testing::SimWorld world(seed);
  auto& node = world.add_node("b1");
  if (!before.empty()) EXPECT_TRUE(node.files().make_folders(before));
  EXPECT_TRUE(make_data_folder(node.files(), path));
  node.crash();
  node.restart();
  return node.files().info(path).has_value();
}

TEST(DataFolderTest, IsThereAfterAPowerCut) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_TRUE(survives_power_cut(seed, "", "/srv")) << seed;
    EXPECT_TRUE(survives_power_cut(seed, "", "/srv/millrace/data")) << seed;
    EXPECT_TRUE(survives_power_cut(seed, "", "/srv/millrace/data/")) << seed;
    // By who died before its name was durable.
    EXPECT_TRUE(survives_power_cut(seed, "/data/here", "/data/here")) << seed;
  }
}

TEST(DataFolderTest, WhatIsInTheWayIsNamed) {
  testing::SimWorld world(1);
  auto& files = world.add_node("b1").files();
  ASSERT_TRUE(files.open("/file", OpenMode::create));
  const auto made = make_data_folder(files, "/file/data");
  ASSERT_FALSE(made);
  EXPECT_TRUE(made.error().detail.contains("/file")) << made.error().detail;
}

}  // namespace
}  // namespace millrace
