#include "kernel/log/fatal_signals.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

#include <millrace/result.h>

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

TEST(LogBeforeFatalSignalsDeathTest, TellsTheThreadAndItsCalls) {
  EXPECT_DEATH(
      {
        StderrLog log({.others = LogLevel::info, .of = {}}, "text");
        const LogBeforeFatalSignals log_first(log);
        std::thread([] {
          pthread_setname_np(pthread_self(), "mr-guilty");
          MR_ASSERT(!"a bug");
        }).join();
      },
      "a bug.*\\(thread mr-guilty\\)\nin thread mr-guilty:\n.*log_test");
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
