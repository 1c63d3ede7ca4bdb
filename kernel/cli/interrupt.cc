#include "kernel/cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace millrace::kernel::cli {

namespace {

std::atomic<int> noted = 0;
std::atomic<int> alive = 0;
static_assert(std::atomic<int>::is_always_lock_free);

void note(int signal) { noted = signal; }

void handle(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  // The next one meets the default.
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  noted = 0;
  ++alive;
  handle(SIGINT, note);
  handle(SIGTERM, note);
}

Interrupt::~Interrupt() {
  --alive;
  handle(SIGINT, SIG_DFL);
  handle(SIGTERM, SIG_DFL);
}

bool Interrupt::asked() const noexcept { return noted != 0; }

void Interrupt::finish() const {
  const int signal = noted;
  if (signal == 0) return;
  handle(signal, SIG_DFL);
  // Of the process: below run() another thread waits for it.
  ::kill(::getpid(), signal);
}

bool Interrupt::take(int signal) noexcept {
  int nothing = 0;
  return alive > 0 && noted.compare_exchange_strong(nothing, signal);
}

}  // namespace millrace::kernel::cli
