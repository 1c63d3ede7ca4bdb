#include "kernel/log/line_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

/// A pipe whose reader is the test.
class LineWriterTest : public ::testing::Test {
 protected:
  LineWriterTest() {
    EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0);
    writer.emplace(ends_[1], 64 << 10,
                   [](std::uint64_t lines) { return std::to_string(lines) + " dropped\n"; });
  }
  ~LineWriterTest() override {
    writer.reset();
    close_reader();
    ::close(ends_[1]);
  }

  /// Reads until `text` has been read, or nothing comes for ten seconds.
  std::string read_until(std::string_view text) {
    while (!read_.contains(text)) {
      pollfd waiting{.fd = ends_[0], .events = POLLIN, .revents = 0};
      if (::poll(&waiting, 1, 10'000) <= 0) break;
      std::array<char, 4096> part;
      const auto bytes = ::read(ends_[0], part.data(), part.size());
      if (bytes <= 0) break;
      read_.append(part.data(), static_cast<std::size_t>(bytes));
    }
    return read_;
  }
  void close_reader() {
    if (ends_[0] >= 0) ::close(std::exchange(ends_[0], -1));
  }
  /// More than the pipe and the writer hold together.
  void overfill() {
    for (int line = 0; line < 10'000; ++line) writer->push(std::string(99, 'x') + "\n");
  }

  std::optional<LineWriter> writer;

 private:
  std::array<int, 2> ends_{-1, -1};
  std::string read_;
};

TEST_F(LineWriterTest, WritesLinesInOrder) {
  writer->push("one\n");
  writer->push("two\n");
  EXPECT_EQ(read_until("two\n"), "one\ntwo\n");
}

TEST_F(LineWriterTest, WritesWhatIsLeftBeforeItEnds) {
  for (int line = 0; line < 100; ++line) writer->push("line\n");
  writer->push("last\n");
  writer.reset();
  EXPECT_THAT(read_until("last\n"), EndsWith("line\nlast\n"));
}

TEST_F(LineWriterTest, NobodyWaitsForAReaderThatStallsAndItIsToldWhatItMissed) {
  overfill();
  EXPECT_FALSE(writer->idle());
  const auto read = read_until("dropped\n");
  EXPECT_THAT(read, HasSubstr("x\n"));
  const auto told = read.rfind('\n', read.size() - 2) + 1;
  const auto dropped = std::stoul(read.substr(told));
  EXPECT_EQ(std::ranges::count(read, '\n') - 1 + static_cast<long>(dropped), 10'000);
  writer->push("again\n");
  EXPECT_THAT(read_until("again\n"), EndsWith("dropped\nagain\n"));
}

TEST_F(LineWriterTest, EndsInTimeAlthoughNobodyReads) {
  overfill();
  const auto begun = std::chrono::steady_clock::now();
  writer.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 3s);
}

TEST_F(LineWriterTest, ALineLongerThanAPipeIsWrittenWhole) {
  const std::string line = std::string(50'000, 'l') + "\n";
  writer->push(line);
  EXPECT_EQ(read_until("\n"), line);
}

TEST(LineWriterClosedTest, AClosedDescriptorLosesLinesAndNothingElse) {
  LineWriter writer(-1, 1 << 10, [](std::uint64_t) { return "dropped\n"; });
  for (int line = 0; line < 1000; ++line) writer.push("line\n");
}

}  // namespace
}  // namespace millrace::kernel
