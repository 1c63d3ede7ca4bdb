#include "kernel/log/journal.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/log/line_writer.h"
#include "kernel/log/stderr_log.h"

namespace millrace::kernel {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Where the journal would listen: a datagram socket under an abstract name.
class Journal {
 public:
  Journal() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_, any, sizeof address.sun_family), 0);
    socklen_t length = sizeof address;
    EXPECT_EQ(::getsockname(socket_, any, &length), 0);
    name_ = "@" + std::string(address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
  }
  ~Journal() { close(); }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  const std::string& name() const { return name_; }
  /// The next entry; none when none comes for ten seconds.
  std::optional<std::string> next() {
    pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, 10'000) <= 0) return std::nullopt;
    std::array<char, 64 << 10> bytes;
    const auto count = ::recv(socket_, bytes.data(), bytes.size(), 0);
    return std::string(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

 private:
  int socket_;
  std::string name_;
};

TEST(JournalEntryTest, HasTheFieldsOfTheEvent) {
  const LogEvent event{{},
                       LogLevel::warning,
                       "storage.filelog",
                       "recovered",
                       {{"partition", "orders-3"}, {"cut.bytes", 112}}};
  EXPECT_EQ(journal_entry(event, "WARN  storage.filelog: recovered"),
            "PRIORITY=4\nSYSLOG_IDENTIFIER=millraced\nMESSAGE=WARN  storage.filelog: recovered\n"
            "MILLRACE_SUBSYSTEM=storage.filelog\nMILLRACE_PARTITION=orders-3\n"
            "MILLRACE_CUT_BYTES=112\n");
}

TEST(JournalEntryTest, AValueOfSeveralLinesStandsBehindItsLength) {
  const LogEvent event{{}, LogLevel::error, "broker", "x", {{"reason", "a\nPRIORITY=0"}}};
  const std::string length("\x0c\0\0\0\0\0\0\0", 8);
  EXPECT_THAT(journal_entry(event, "x"),
              HasSubstr("\nMILLRACE_REASON\n" + length + "a\nPRIORITY=0\n"));
}

TEST(JournalTest, EntriesGoThereAndNothingToStderr) {
  Journal journal;
  ::testing::internal::CaptureStderr();
  {
    StderrLog log({.others = LogLevel::info, .of = {}}, "text", true, journal.name());
    Log(log, "broker").info("ready", {{"shards", 2}});
    const auto entry = journal.next();
    ASSERT_TRUE(entry);
    EXPECT_THAT(*entry, StartsWith("PRIORITY=6\n"));
    EXPECT_THAT(*entry, HasSubstr("\nMESSAGE=INFO  broker: ready shards=2\n"));
    EXPECT_THAT(*entry, HasSubstr("\nMILLRACE_SHARDS=2\n"));
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(JournalTest, WhatItRefusesGoesToStderr) {
  ::testing::internal::CaptureStderr();
  {
    Journal journal;
    StderrLog log({.others = LogLevel::info, .of = {}}, "text", true, journal.name());
    // Larger than a datagram may be.
    Log(log, "broker").info("large", {{"text", std::string(300 << 10, 'l')}});
    Log(log, "broker").info("small");
    EXPECT_THAT(journal.next().value_or(""), HasSubstr("small"));
    journal.close();
    Log(log, "broker").error("alone");
  }
  const auto written = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(written, StartsWith("<6>INFO  broker: large text=lll"));
  EXPECT_THAT(written, HasSubstr("l\n<3>ERROR broker: alone\n"));
  EXPECT_THAT(written, Not(HasSubstr("small")));
}

TEST(JournalTest, WithoutASocketLinesGoToStderr) {
  ::testing::internal::CaptureStderr();
  {
    StderrLog log({.others = LogLevel::info, .of = {}}, "text", true, "/no/such/socket");
    Log(log, "broker").info("ready");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "<6>INFO  broker: ready\n");
}

TEST(JournalTest, NobodyWaitsForOneThatStallsAndItIsToldWhatItMissed) {
  Journal journal;
  constexpr long all = 10'000;
  LineWriter writer(
      STDERR_FILENO, 64 << 10,
      [](std::uint64_t lines) { return with_entry(std::to_string(lines) + " dropped", ""); },
      std::make_unique<JournalSocket>(journal.name()));
  for (long entry = 0; entry < all; ++entry) writer.push(with_entry("1 entry", ""));
  EXPECT_FALSE(writer.idle());
  long accounted = 0;
  bool dropped = false;
  while (accounted < all) {
    const auto entry = journal.next();
    ASSERT_TRUE(entry) << accounted;
    accounted += std::stol(*entry);
    dropped |= entry->ends_with(" dropped");
  }
  EXPECT_EQ(accounted, all);
  EXPECT_TRUE(dropped);
}

}  // namespace
}  // namespace millrace::kernel
