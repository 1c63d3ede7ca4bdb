#include "plugins/coordination/zookeeper/connect.h"

#include <gtest/gtest.h>

#include "plugins/coordination/zookeeper/library_log.h"

namespace millrace::zookeeper {
namespace {

TEST(ConnectTest, TakesServersWithAndWithoutPortAndChroot) {
  const auto plain = parse_connect("zk1:2182");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->servers, "zk1:2182");
  EXPECT_EQ(plain->chroot, "");
  const auto several = parse_connect("zk1,127.0.0.1:99,[::1]:2181/a/b");
  ASSERT_TRUE(several);
  EXPECT_EQ(several->servers, "zk1:2181,127.0.0.1:99,[::1]:2181");
  EXPECT_EQ(several->chroot, "/a/b");
  EXPECT_EQ(parse_connect("zk1:2181/")->chroot, "");
}

TEST(ConnectTest, SaysWhatIsWrong) {
  for (const auto* text : {"", ",", "zk1:2181,", "zk1:0", "zk1:99999", "zk1:port", ":2181",
                           "zk1:2181//a", "zk1:2181/a/", "zk1:2181/a/../b", "/a"}) {
    const auto wrong = parse_connect(text);
    ASSERT_FALSE(wrong) << text;
    EXPECT_EQ(wrong.error().code, Errc::invalid_argument);
    EXPECT_TRUE(wrong.error().detail.contains(text)) << wrong.error().detail;
  }
}

TEST(ConnectTest, KnowsPathsThatTheServerTakes) {
  for (const auto* path : {"/a", "/a/b.c", "/brokers/topics/a-b_c/partitions/0", "/a/..b"}) {
    EXPECT_TRUE(valid_path(path)) << path;
  }
  for (const auto* path : {"", "/", "a", "/a/", "//", "/a//b", "/.", "/a/..", "/a\nb"}) {
    EXPECT_FALSE(valid_path(path)) << path;
  }
}

TEST(LibraryLogTest, TakesTheTextOutOfALine) {
  EXPECT_EQ(text_of_line("2026-01-02 03:04:05,678:12(0x7f):ZOO_ERROR@handle_socket@24: refused: x"),
            "refused: x");
  EXPECT_EQ(text_of_line("something else"), "something else");
}

}  // namespace
}  // namespace millrace::zookeeper
