#include <cerrno>
#include <csignal>
#include <iostream>
#include <optional>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "kernel/cli/context.h"
#include "kernel/cli/interrupt.h"
#include "kernel/cli/standard_output.h"
#include "kernel/env/real_environment.h"
#include "kernel/log/metrics_registry.h"
#include "kernel/log/stderr_log.h"

namespace millrace::kernel::cli {

namespace {

/// While it lives, signals that would end the process are waited for instead. Made before other
/// threads are, which then leave them alone too.
class Interrupts {
 public:
  Interrupts() {
    ::sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction now{};
      // Whoever has started us in the background has them ignored.
      const bool ignored = ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
      if (!ignored) ::sigaddset(&signals_, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    arrived_ = ::signalfd(-1, &signals_, SFD_CLOEXEC);
    ended_ = ::eventfd(0, EFD_CLOEXEC);
  }
  ~Interrupts() {
    ::close(arrived_);
    ::close(ended_);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// [any thread]
  void end() const { ::eventfd_write(ended_, 1); }
  /// Until end(), or a signal, which it answers.
  std::optional<int> wait() const {
    pollfd waited[] = {{ended_, POLLIN, 0}, {arrived_, POLLIN, 0}};
    while (::poll(waited, 2, -1) < 0 && errno == EINTR) {
    }
    // A signal first: it may be how the verb has ended.
    if (waited[1].revents == 0) return std::nullopt;
    signalfd_siginfo info{};
    if (::read(arrived_, &info, sizeof(info)) != sizeof(info)) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
  }
  /// As if it had never been waited for: whoever has started us sees what has ended us.
  [[noreturn]] void die_of(int signal) const {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    ::pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
    constexpr int first_code_of_signals = 128;
    ::_exit(first_code_of_signals + signal);
  }

 private:
  sigset_t signals_{};
  sigset_t before_{};
  int arrived_ = -1;
  int ended_ = -1;
};

Task<> run_to_end(const std::function<Task<>(Environment&)>& body, Environment& environment,
                  Result<>& result, const Interrupts& interrupts) {
  result = co_await body(environment);
  interrupts.end();
  co_return {};
}

}  // namespace

Result<> run(const std::function<Task<>(Environment&)>& body,
             const std::function<std::string()>& last_words) {
  const Interrupts interrupts;
  StderrLog sink({.others = LogLevel::warning, .of = {}}, "text");
  MetricsRegistry metrics;
  MR_TRY(auto environment,
         RealEnvironment::start({.shards = 1, .workers = 1}, Log(sink, "environment"), metrics));
  Result<> result;
  auto& shard = *environment->shards().front();
  shard.post([&] { spawn(shard, run_to_end(body, *environment, result, interrupts), "verb"); });
  while (const auto signal = interrupts.wait()) {
    if (Interrupt::take(*signal)) continue;
    if (auto* output = standard_output()) output->settle();
    // Behind the ^C that a terminal shows.
    if (last_words) std::cerr << (::isatty(STDERR_FILENO) == 1 ? "\n" : "") << last_words();
    interrupts.die_of(*signal);
  }
  environment->stop();
  return result;
}

}  // namespace millrace::kernel::cli
