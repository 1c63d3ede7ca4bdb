#include "kernel/cli/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace millrace::kernel::cli {

namespace {

std::atomic<int> noted = 0;
std::atomic<int> alive = 0;
std::atomic<bool> tidy = false;
static_assert(std::atomic<int>::is_always_lock_free);

void note(int signal) { noted = signal; }

constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};

bool is_ignored(int signal) {
  struct sigaction now{};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

void handle(int signal, void (*handler)(int)) {
  if (is_ignored(signal)) return;
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  // The next one meets the default.
  if (signal != SIGHUP) action.sa_flags |= static_cast<int>(SA_RESETHAND);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  noted = 0;
  tidy = false;
  ++alive;
  for (const int signal : signals) handle(signal, note);
}

Interrupt::~Interrupt() {
  --alive;
  for (const int signal : signals) handle(signal, SIG_DFL);
}

bool Interrupt::asked() const noexcept { return noted != 0; }

void Interrupt::finish() const {
  const int signal = noted;
  if (signal == 0) return;
  tidy = true;
  handle(signal, SIG_DFL);
  // Of the process: below run() another thread waits for it.
  ::kill(::getpid(), signal);
}

bool Interrupt::take(int signal) noexcept {
  if (alive == 0 || tidy) return false;
  int nothing = 0;
  return noted.compare_exchange_strong(nothing, signal) || signal == SIGHUP;
}

}  // namespace millrace::kernel::cli
