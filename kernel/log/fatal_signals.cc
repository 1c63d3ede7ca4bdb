#include "kernel/log/fatal_signals.h"

#include <execinfo.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <ctime>

namespace millrace::kernel {

namespace {

constexpr std::array fatal_signals = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr timespec pause_between_looks{.tv_sec = 0, .tv_nsec = 1'000'000};
constexpr int looks_max = 500;
constexpr int frames_max = 64;

// What the handler reads. Handlers take no arguments of ours.
std::atomic<const StderrLog*> log_to_wait_for = nullptr;
std::array<struct sigaction, fatal_signals.size()> actions_before;

void say(const char* text) noexcept {
  static_cast<void>(!::write(STDERR_FILENO, text, std::strlen(text)));
}

// Where in which thread: names of functions where the program has kept them, else places in it for
// addr2line.
void write_backtrace() noexcept {
  char thread[17] = "";
  ::prctl(PR_GET_NAME, thread);
  say("in thread ");
  say(thread);
  say(":\n");
  std::array<void*, frames_max> frames;
  const int count = ::backtrace(frames.data(), frames_max);
  ::backtrace_symbols_fd(frames.data(), count, STDERR_FILENO);
}

// Calls only what a signal handler may call. The faulting instruction runs again when this returns
// (abort raises its signal again), and meets the action that was there before.
void wait_for_log(int signal, siginfo_t* info, void* /*context*/) {
  for (std::size_t at = 0; at < fatal_signals.size(); ++at) {
    if (fatal_signals[at] == signal) sigaction(signal, &actions_before[at], nullptr);
  }
  const auto* log = log_to_wait_for.load();
  for (int look = 0; log && !log->idle() && look < looks_max; ++look) {
    nanosleep(&pause_between_looks, nullptr);
  }
  write_backtrace();
  // Where somebody has sent it, as a watchdog does, nothing would run again.
  if (info->si_code <= 0) ::raise(signal);
}

}  // namespace

LogBeforeFatalSignals::LogBeforeFatalSignals(const StderrLog& log) {
  log_to_wait_for = &log;
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // loads what it needs: in the handler it may not
  struct sigaction action{};
  action.sa_sigaction = wait_for_log;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (std::size_t at = 0; at < fatal_signals.size(); ++at) {
    sigaction(fatal_signals[at], &action, &actions_before[at]);
  }
}

LogBeforeFatalSignals::~LogBeforeFatalSignals() {
  for (std::size_t at = 0; at < fatal_signals.size(); ++at) {
    sigaction(fatal_signals[at], &actions_before[at], nullptr);
  }
  log_to_wait_for = nullptr;
}

}  // namespace millrace::kernel
