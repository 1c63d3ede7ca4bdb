#include "kernel/cli/standard_output.h"

#include <cerrno>
#include <csignal>
#include <iostream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace millrace::kernel::cli {
namespace {

class StandardOutputTest : public testing::Test {
 protected:
  StandardOutputTest() {
    ::signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK), 0);
  }
  ~StandardOutputTest() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }

  // What has been written and not been read.
  std::string written() {
    std::string text(1 << 20, '\0');
    const auto bytes = ::read(pipe_[0], text.data(), text.size());
    text.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
    return text;
  }

  int pipe_[2] = {-1, -1};
};

TEST_F(StandardOutputTest, LinesAreGatheredAndWrittenWhole) {
  StandardOutput output(pipe_[1]);
  std::cout << "a" << 1 << '\n';
  EXPECT_EQ(written(), "");
  std::cout << std::string(60'000, 'x') << "\nhalf of " << std::string(5'600, 'y');
  const auto lines = written();
  EXPECT_EQ(lines.size(), 3 + 60'001U);
  EXPECT_EQ(lines.back(), '\n');
  std::cout.flush();
  EXPECT_EQ(written(), "half of " + std::string(5'600, 'y'));
  EXPECT_EQ(output.failure(), 0);
  EXPECT_TRUE(check_output());
}

TEST_F(StandardOutputTest, TheLastOfItIsWrittenAtTheEnd) {
  {
    const StandardOutput output(pipe_[1]);
    std::cout << "end";
  }
  EXPECT_EQ(written(), "end");
}

TEST_F(StandardOutputTest, AReaderThatIsGoneIsKnown) {
  StandardOutput output(pipe_[1]);
  ::close(std::exchange(pipe_[0], -1));
  std::cout << "a\n" << std::flush;
  EXPECT_EQ(output.failure(), EPIPE);
  EXPECT_EQ(check_output().error().code, Errc::cancelled);
}

TEST_F(StandardOutputTest, ATerminalIsGivenNoCommandsOfOthers) {
  const int ours = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(ours, 0);
  ASSERT_EQ(::unlockpt(ours), 0);
  char name[64];
  ASSERT_EQ(::ptsname_r(ours, name, sizeof(name)), 0);
  const int theirs = ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(theirs, 0);
  std::string seen(100, '\0');
  {
    StandardOutput output(theirs);
    output.add("\x1b[35mours\x1b[0m ");
    std::cout << "\x1b[31mred \x1b]0;title\x07" << '\n';
    const auto bytes = ::read(ours, seen.data(), seen.size());
    seen.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
  }
  EXPECT_EQ(seen, "\x1b[35mours\x1b[0m \\x1b[31mred \\x1b]0;title\\x07\r\n");
  ::close(ours);
  ::close(theirs);

  const StandardOutput output(pipe_[1]);
  std::cout << "\x1b]0;title\x07\n" << std::flush;
  EXPECT_EQ(written(), "\x1b]0;title\x07\n") << "a pipe has the bytes";
}

TEST_F(StandardOutputTest, ADiskThatIsFullIsKnown) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  {
    StandardOutput output(full);
    std::cout << "a\n" << std::flush;
    EXPECT_EQ(output.failure(), ENOSPC);
  }
  ::close(full);
}

}  // namespace
}  // namespace millrace::kernel::cli
