#include "kernel/host/load_guard.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "kernel/host/library.h"

namespace millrace::kernel {

namespace {

// What the handler reads; it may neither allocate nor lock.
std::array<char, 64> program_name{};
std::atomic<int> exit_with = 0;
std::array<struct sigaction, LoadGuard::signals.size()> actions_before{};

void say(const char* text) { static_cast<void>(::write(STDERR_FILENO, text, std::strlen(text))); }

void tell_file(int signal) {
  if (const char* file = file_being_mapped()) {
    say(program_name.data());
    say(": ");
    say(file);
    say(": whoever loads it ends by SIG");
    say(::sigabbrev_np(signal));
    say(": the file is damaged, or what runs when it is loaded is wrong; copy or install it "
        "again\n");
    std::_Exit(exit_with);
  }
  // The instruction runs again when this returns, and meets what was there before.
  for (std::size_t at = 0; at < LoadGuard::signals.size(); ++at) {
    if (LoadGuard::signals[at] == signal) ::sigaction(signal, &actions_before[at], nullptr);
  }
}

}  // namespace

LoadGuard::LoadGuard(const std::string& program, int exit_code) {
  std::strncpy(program_name.data(), program.c_str(), program_name.size() - 1);
  exit_with = exit_code;
  struct sigaction action{};
  action.sa_handler = tell_file;
  sigemptyset(&action.sa_mask);
  for (std::size_t at = 0; at < signals.size(); ++at) {
    ::sigaction(signals[at], &action, &before_[at]);
  }
  actions_before = before_;
}

LoadGuard::~LoadGuard() {
  for (std::size_t at = 0; at < signals.size(); ++at) {
    ::sigaction(signals[at], &before_[at], nullptr);
  }
}

}  // namespace millrace::kernel
