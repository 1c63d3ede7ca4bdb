// A plugin's file is tried in a process of its own: what that says, and how it may end.
#include "kernel/host/trial.h"

#include <chrono>
#include <filesystem>

#include "host_fixture.h"

namespace millrace::kernel {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class TrialTest : public ::testing::Test {
 protected:
  /// Why /p/x.so cannot be loaded, when that process is this script.
  std::string reason(const std::string& script, Duration limit = 10s) {
    const auto program = folder_.write("program", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    const auto tried = trial_by(program, limit)("/p/x.so");
    if (tried) return "";
    EXPECT_TRUE(tried.error().code == Errc::incompatible || tried.error().code == Errc::io);
    return tried.error().detail;
  }

  TemporaryFolder folder_;
};

TEST_F(TrialTest, IsAskedForTheFileAndAnswersByItsEnd) {
  EXPECT_EQ(reason("test \"$1\" = --try-plugin && test \"$2\" = /p/x.so && test $# = 2"), "");
  EXPECT_EQ(reason("printf \"$2: built for ABI 7\"; exit 1"), "/p/x.so: built for ABI 7");
  EXPECT_EQ(reason("exit 1"), "/p/x.so: a process that loads it ends with exit code 1");
  EXPECT_EQ(reason("exit 4"), "/p/x.so: a process that loads it ends with exit code 4");
}

TEST_F(TrialTest, WhatEndsThatProcessIsNamed) {
  EXPECT_THAT(reason("kill -SEGV $$"),
              AllOf(StartsWith("/p/x.so: a process that loads it ends by SIGSEGV: the file is "),
                    HasSubstr("install it again")));
}

TEST_F(TrialTest, WhatDoesNotEndIsEnded) {
  EXPECT_THAT(reason("exec sleep 100", 0s), HasSubstr("has not ended after 0 s"));
}

TEST_F(TrialTest, WhoHasNoProgramIsTold) {
  const auto tried = trial_by("/no/such/program", 10s)("/p/x.so");
  ASSERT_FALSE(tried);
  EXPECT_EQ(tried.error().code, Errc::io);
  EXPECT_THAT(tried.error().detail, HasSubstr("no process could be started"));
}

TEST_F(TrialTest, ThatProcessLoadsReadsAndMakes) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_trial(good_plugin("echo")), 0);
  EXPECT_NE(run_trial(bad_plugin("other_major")), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              StartsWith(bad_plugin("other_major") + ": built for plugin ABI"));
}

TEST_F(TrialTest, WhatIsMappedIsNotTriedAgain) {
  const auto file = folder_.copy(good_plugin("echo"), "compression/echo.so");
  int tried = 0;
  const PluginTrial refuse = [&tried](const std::string& path) -> Result<> {
    ++tried;
    return Error{Errc::incompatible, path + ": as the test says"};
  };
  EXPECT_EQ(load_tried(file, "compression", refuse).error().detail, file + ": as the test says");
  EXPECT_EQ(state_of_file(file), FileState::not_mapped);
  ASSERT_TRUE(load_plugin(file));
  EXPECT_TRUE(load_tried(file, "compression", refuse));
  EXPECT_EQ(tried, 1);
}

TEST_F(TrialTest, AFileThatIsAnotherThanWasMappedHasChanged) {
  const auto file = folder_.copy(good_plugin("echo"), "compression/echo.so");
  ASSERT_TRUE(load_plugin(file));
  EXPECT_EQ(state_of_file(file), FileState::as_mapped);
  // As a package does it: a file of its own in the place of the one that is mapped.
  std::filesystem::remove(file);
  EXPECT_EQ(state_of_file(file), FileState::not_mapped);
  folder_.copy(good_plugin("echo"), "compression/echo.so");
  EXPECT_EQ(state_of_file(file), FileState::as_mapped) << "the same package again";
  std::filesystem::remove(file);
  folder_.copy(good_plugin("another_gzip"), "compression/echo.so");
  EXPECT_EQ(state_of_file(file), FileState::changed);
}

}  // namespace
}  // namespace millrace::kernel
