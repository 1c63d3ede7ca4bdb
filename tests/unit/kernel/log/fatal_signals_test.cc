#include "kernel/log/fatal_signals.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

TEST(LogBeforeFatalSignalsDeathTest, EveryLineIsWrittenBeforeTheProcessAborts) {
  EXPECT_DEATH(
      {
        StderrLog log({.others = LogLevel::info, .of = {}}, "text");
        const LogBeforeFatalSignals log_first(log);
        for (int line = 0; line < 1000; ++line) Log(log, "broker").info("a line before");
        Log(log, "broker").info("the last line");
        std::abort();
      },
      "the last line");
}

TEST(LogBeforeFatalSignalsDeathTest, WhatAWatchdogSendsEndsTheProcessToo) {
  EXPECT_EXIT(
      {
        StderrLog log({.others = LogLevel::info, .of = {}}, "text");
        const LogBeforeFatalSignals log_first(log);
        Log(log, "broker").info("the last line");
        ::kill(::getpid(), SIGABRT);
        std::_Exit(0);
      },
      ::testing::KilledBySignal(SIGABRT), "the last line");
}

}  // namespace
}  // namespace millrace::kernel
