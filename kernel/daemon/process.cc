#include "kernel/daemon/process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

namespace millrace::kernel {

Signals::Signals() : main_(pthread_self()) {
  std::signal(SIGPIPE, SIG_IGN);
  sigemptyset(&set_);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, woken}) sigaddset(&set_, signal);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
}

int Signals::wait() const {
  int signal = 0;
  sigwait(&set_, &signal);
  return signal;
}

std::optional<int> Signals::wait_for(Duration limit) const {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto left =
        std::max<Duration>(until - std::chrono::steady_clock::now(), Duration::zero());
    const timespec time{.tv_sec = left / std::chrono::seconds(1),
                        .tv_nsec = (left % std::chrono::seconds(1)).count()};
    const int signal = sigtimedwait(&set_, nullptr, &time);
    if (signal > 0) return signal;
    if (errno == EAGAIN) return std::nullopt;
  }
}

void Signals::wake() const noexcept { pthread_kill(main_, woken); }

void fill_standard_descriptors() noexcept {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() takes the lowest number that is free: those below are open by now.
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) (void)::open("/dev/null", O_RDWR);
  }
}

void raise_open_files_limit(const Log& log) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    const auto before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) {
      log.info("open files", {{"limit", limit.rlim_cur}, {"limit_before", before}});
      return;
    }
  }
  log.warning("the limit of open files could not be raised",
              {{"reason", std::generic_category().message(errno)}});
}

}  // namespace millrace::kernel
