#include <millrace/environment.h>

#include <string>

#include <gtest/gtest.h>

#include <millrace/testing/sim_environment.h>

namespace millrace {
namespace {

TEST(AddressTest, ReadsHostAndPort) {
  const std::pair<const char*, Address> known[] = {{"127.0.0.1:9092", {"127.0.0.1", 9092}},
                                                   {"broker.example:0", {"broker.example", 0}},
                                                   {"[::1]:65535", {"::1", 65535}},
                                                   {"[fe80::1%eth0]:1", {"fe80::1%eth0", 1}}};
  for (const auto& [text, address] : known) {
    const auto parsed = parse_address(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, address);
    EXPECT_EQ(to_string(*parsed), text);
  }
}

TEST(AddressTest, SaysWhatAnAddressLooksLike) {
  for (const auto* text : {"", "9092", ":9092", "host", "host:", "host:x", "host:1x", "host:65536",
                           "host:-1", "::1:9092", "[]:1", "[::1:9092", "[::1]", "host :1x"}) {
    const auto refused = parse_address(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_TRUE(refused.error().detail.contains("expected HOST:PORT")) << refused.error().detail;
  }
}

class FilesTest : public ::testing::Test {
 protected:
  testing::SimWorld world{1};
  testing::SimEnvironment& node = world.add_node("b1");
  FileSystem& files = node.files();
};

TEST_F(FilesTest, ReadsAndReplacesAWholeFile) {
  EXPECT_EQ(read_file(files, "/data/x").error().code, Errc::not_found);
  ASSERT_TRUE(replace_file(files, "/data/x", as_bytes("a longer first content")));
  ASSERT_TRUE(replace_file(files, "/data/x", as_bytes("short")));
  EXPECT_EQ(read_file(files, "/data/x")->text(), "short");
  EXPECT_EQ(files.list("/data")->size(), 1U) << "no temporary file is left";
  ASSERT_TRUE(replace_file(files, "/data/x", {}));
  EXPECT_TRUE(read_file(files, "/data/x")->empty());
}

TEST_F(FilesTest, ReplacesDurably) {
  ASSERT_TRUE(replace_file(files, "/data/x", as_bytes("kept")));
  node.crash();
  node.restart();
  EXPECT_EQ(read_file(files, "/data/x")->text(), "kept");
}

TEST_F(FilesTest, KeepsTheOldContentWhenReplacingFails) {
  ASSERT_TRUE(replace_file(files, "/data/x", as_bytes("old")));
  node.files().limit_bytes(5);
  EXPECT_FALSE(replace_file(files, "/data/x", as_bytes("too long for the disk")));
  EXPECT_EQ(read_file(files, "/data/x")->text(), "old");
  node.files().limit_bytes(std::nullopt);
  EXPECT_TRUE(replace_file(files, "/data/x", as_bytes("new")))
      << "a temporary file that was left does not matter";
  EXPECT_EQ(read_file(files, "/data/x")->text(), "new");
}

}  // namespace
}  // namespace millrace
