#include "kernel/env/thread.h"

#include <pthread.h>

#include <csignal>
#include <system_error>

namespace millrace::kernel {

Result<std::thread> start_thread(const std::string& name, std::move_only_function<void()> body) {
  try {
    return std::thread([name, body = std::move(body)]() mutable {
      pthread_setname_np(pthread_self(), name.c_str());
      sigset_t pipe;
      sigemptyset(&pipe);
      sigaddset(&pipe, SIGPIPE);
      pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
      body();
    });
  } catch (const std::system_error& error) {
    return Error{Errc::io, "starting thread " + name + ": " + error.what()};
  }
}

}  // namespace millrace::kernel
