#include "kernel/cli/plugin_list.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <unistd.h>

namespace millrace::kernel::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class PackagesTest : public ::testing::Test {
 protected:
  PackagesTest() { std::filesystem::create_directories(lists_); }
  ~PackagesTest() override { std::filesystem::remove_all(lists_); }

  void list(const std::string& name, const std::string& files) const {
    std::ofstream(lists_ + "/" + name) << files;
  }

  const std::string lists_ = ::testing::TempDir() + "millrace-dpkg-" + std::to_string(::getpid());
};

TEST_F(PackagesTest, AFileIsOfThePackageThatListsIt) {
  const std::string folder = "/usr/lib/millrace/plugins/";
  list("millrace.list", "/.\n/usr\n" + folder + "storage/filelog.so\n");
  list("words:amd64.list", folder + "operators/words.so\n");
  list("old.list", "/lib/millrace/plugins/operators/old.so\n");
  list("words.md5sums", folder + "operators/mine.so\n");
  EXPECT_THAT(
      packages_of({folder + "operators/mine.so", folder + "operators/old.so",
                   folder + "operators/words.so", folder + "storage/filelog.so"},
                  lists_),
      ElementsAre(Pair(folder + "operators/mine.so", ""), Pair(folder + "operators/old.so", "old"),
                  Pair(folder + "operators/words.so", "words"),
                  Pair(folder + "storage/filelog.so", "millrace")));
}

TEST_F(PackagesTest, WithoutDpkgThereAreNone) {
  EXPECT_THAT(packages_of({"/p/a.so"}, lists_ + "/none"), ElementsAre(Pair("/p/a.so", "")));
}

TEST(PluginUsesTest, AreThoseOfTheBrokerAndOfItsStreams) {
  const auto answer = boost::json::parse(R"({
    "plugins":[{"kind":"transport","instance":"ops","id":"i","version":"1","path":"/p/http.so",
                "table":"transport.ops","since":"2026-11-30T10:00:00Z"}],
    "steps":[{"stream":"s","step":"t","id":"j","version":"2","path":"/p/t.so","table":"stream.s"},
             {"stream":"lost","step":"t","id":"","version":"","path":"","table":"stream.lost"}]})");
  const auto uses = uses_of(answer.as_object());
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].kind, "transport");
  EXPECT_EQ(uses[0].table, "transport.ops");
  EXPECT_EQ(uses[0].since, "2026-11-30T10:00:00Z");
  EXPECT_EQ(uses[1].kind, "operators");
  EXPECT_EQ(uses[1].path, "/p/t.so");
  EXPECT_EQ(uses[1].since, "");
}

}  // namespace
}  // namespace millrace::kernel::cli
