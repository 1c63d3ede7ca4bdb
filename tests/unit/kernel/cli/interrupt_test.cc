#include "kernel/cli/interrupt.h"

#include <csignal>
#include <cstdlib>
#include <iostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel::cli {
namespace {

using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::KilledBySignal;
using ::testing::Not;

void tidy_up_while_it_comes_twice(int signal) {
  std::signal(signal, SIG_DFL);  // who has started the tests may have it ignored
  const Interrupt interrupt;
  std::raise(signal);
  std::raise(signal);
  if (interrupt.asked()) std::cerr << "all is tidy";
  interrupt.finish();
  std::_Exit(0);
}

TEST(InterruptDeathTest, TheSecondEndsTheProcess) {
  for (const int signal : {SIGINT, SIGTERM}) {
    EXPECT_EXIT(tidy_up_while_it_comes_twice(signal), KilledBySignal(signal),
                Not(HasSubstr("all is tidy")));
  }
}

TEST(InterruptDeathTest, AClosedTerminalMayBeToldTwice) {
  EXPECT_EXIT(tidy_up_while_it_comes_twice(SIGHUP), KilledBySignal(SIGHUP),
              HasSubstr("all is tidy"));
}

TEST(InterruptTest, WhoTidiesUpIsToldOnceAndGoesOnWithoutATerminal) {
  EXPECT_FALSE(Interrupt::take(SIGINT));
  for (const int signal : {SIGINT, SIGHUP}) {
    const Interrupt interrupt;
    EXPECT_TRUE(Interrupt::take(signal));
    EXPECT_TRUE(interrupt.asked());
    EXPECT_TRUE(Interrupt::take(SIGHUP));
    EXPECT_FALSE(Interrupt::take(SIGINT));
  }
}

// As below run(), where a thread waits for it.
void finish_with_signals_blocked(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t waited_for{};
  ::sigemptyset(&waited_for);
  ::sigaddset(&waited_for, signal);
  ::pthread_sigmask(SIG_BLOCK, &waited_for, nullptr);
  const Interrupt interrupt;
  const bool noted = Interrupt::take(signal);
  interrupt.finish();
  std::_Exit(noted && !Interrupt::take(signal) ? 0 : 1);
}

TEST(InterruptDeathTest, OnceAllIsTidyTheNextOneIsTheEnd) {
  for (const int signal : {SIGINT, SIGHUP}) {
    EXPECT_EXIT(finish_with_signals_blocked(signal), ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace millrace::kernel::cli
