#include "kernel/log/line_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
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

  /// Reads until what has been read is `enough`, or nothing comes for ten seconds.
  template <typename Enough>
  std::string read_until(Enough enough) {
    while (!enough(read_)) {
      pollfd waiting{.fd = ends_[0], .events = POLLIN, .revents = 0};
      if (::poll(&waiting, 1, 10'000) <= 0) break;
      std::array<char, 4096> part;
      const auto bytes = ::read(ends_[0], part.data(), part.size());
      if (bytes <= 0) break;
      read_.append(part.data(), static_cast<std::size_t>(bytes));
    }
    return read_;
  }
  std::string read_until(const char* text) {
    return read_until([text](const std::string& read) { return read.contains(text); });
  }
  void close_reader() {
    if (ends_[0] >= 0) ::close(std::exchange(ends_[0], -1));
  }
  /// More than the pipe and the writer hold together.
  void overfill() {
    for (int line = 0; line < overfill_lines; ++line) writer->push(std::string(99, 'x') + "\n");
  }
  static constexpr long overfill_lines = 10'000;

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

/// The whole lines that `read` has, and those that it tells are missing: of these perhaps in
/// several places, since the writer may take lines while they still come.
long accounted_for(const std::string& read) {
  std::istringstream lines(read.substr(0, read.rfind('\n') + 1));
  long count = 0;
  for (std::string line; std::getline(lines, line);) {
    count += line.ends_with(" dropped") ? std::stol(line) : 1;
  }
  return count;
}

TEST_F(LineWriterTest, NobodyWaitsForAReaderThatStallsAndItIsToldWhatItMissed) {
  overfill();
  EXPECT_FALSE(writer->idle());
  const auto read =
      read_until([](const std::string& so_far) { return accounted_for(so_far) >= overfill_lines; });
  EXPECT_EQ(accounted_for(read), overfill_lines);
  EXPECT_THAT(read, HasSubstr("x\n"));
  EXPECT_THAT(read, HasSubstr(" dropped\n"));
  writer->push("again\n");
  EXPECT_THAT(read_until("again\n"), EndsWith("\nagain\n"));
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
