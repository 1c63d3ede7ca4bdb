#include "kernel/host/trial.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iostream>
#include <system_error>
#include <utility>

#include <millrace/plugin.h>

#include "kernel/config/text.h"
#include "kernel/host/instance_host.h"
#include "kernel/host/library.h"

namespace millrace::kernel {

namespace {

constexpr const char* this_program = "/proc/self/exe";
constexpr Duration usual_limit = std::chrono::seconds(20);
constexpr std::size_t said_bytes_max = 4096;
constexpr int exit_refused = 1;
/// How often a process that says nothing is asked whether it has ended.
constexpr int look_ms = 20;
/// As if it had ended with exit code 255: somebody else has heard how it did.
constexpr int not_known = 0xff00;

std::string reason_of(int code) { return std::generic_category().message(code); }

Error refused(const std::string& path, std::string_view reason) {
  return {Errc::incompatible, concat(path, ": ", reason)};
}

Error not_tried(const std::string& path, int code) {
  return {Errc::io, concat(path, ": no process could be started to try it in: ", reason_of(code))};
}

class Descriptor {
 public:
  Descriptor() = default;
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void close() noexcept {
    if (number >= 0) ::close(std::exchange(number, -1));
  }
  int number = -1;
};

/// What a new process gets: no signal blocked or ignored, no input, and where to write.
class SpawnSettings {
 public:
  explicit SpawnSettings(int output) {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_t actions{};
};

struct Ended {
  int status = 0;
  std::string said;
  bool in_time = true;
};

/// Until the process has ended; what it leaves behind may hold the pipe open.
Ended follow(pid_t process, int output, Duration limit) {
  Ended ended;
  const auto give_up_at = std::chrono::steady_clock::now() + limit;
  std::array<char, 1024> chunk;
  while (true) {
    const pid_t gone = ::waitpid(process, &ended.status, WNOHANG);
    pollfd waiting{.fd = output, .events = POLLIN, .revents = 0};
    while (::poll(&waiting, 1, gone == 0 ? look_ms : 0) > 0) {
      const auto bytes = ::read(output, chunk.data(), chunk.size());
      if (bytes <= 0) break;
      const auto room = said_bytes_max - std::min(said_bytes_max, ended.said.size());
      ended.said.append(chunk.data(), std::min(static_cast<std::size_t>(bytes), room));
    }
    if (gone < 0) ended.status = not_known;
    if (gone != 0) return ended;
    if (std::chrono::steady_clock::now() > give_up_at) break;
    // A pipe that is closed is always ready.
    if (waiting.revents == POLLHUP) ::poll(nullptr, 0, look_ms);
  }
  ended.in_time = false;
  ::kill(process, SIGKILL);
  ::waitpid(process, &ended.status, 0);
  return ended;
}

Result<> verdict(const std::string& path, const Ended& ended, Duration limit) {
  if (!ended.in_time) {
    return refused(path, concat("a process that loads it has not ended after ",
                                limit / std::chrono::seconds(1), " s"));
  }
  if (WIFSIGNALED(ended.status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(ended.status));
    return refused(path, concat("a process that loads it ends by SIG", name ? name : "?",
                                ": the file is damaged, or what runs when it is loaded is wrong; "
                                "copy or install it again"));
  }
  const int code = WEXITSTATUS(ended.status);
  if (code == 0) return {};
  if (code == exit_refused && !ended.said.empty()) return Error{Errc::incompatible, ended.said};
  return refused(path, concat("a process that loads it ends with exit code ", code));
}

Result<> try_by(const std::string& program, const std::string& path, Duration limit) {
  Descriptor reads;
  Descriptor writes;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return not_tried(path, errno);
  reads.number = ends[0];
  writes.number = ends[1];
  const SpawnSettings settings(writes.number);
  std::array<std::string, 3> words{program, trial_argument, path};
  std::array<char*, 4> arguments{words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t process = 0;
  const int failed = ::posix_spawn(&process, program.c_str(), &settings.actions,
                                   &settings.attributes, arguments.data(), environ);
  if (failed != 0) return not_tried(path, failed);
  writes.close();
  return verdict(path, follow(process, reads.number, limit), limit);
}

/// Every text that it points to; a bad pointer ends this process here.
std::size_t bytes_described(const MillraceDescriptor& descriptor) {
  std::size_t bytes = 0;
  const auto count = [&bytes](const char* text) { bytes += text ? std::strlen(text) : 0; };
  for (const char* text : {descriptor.id, descriptor.version, descriptor.licence,
                           descriptor.summary, descriptor.needs, descriptor.provides}) {
    count(text);
  }
  for (const auto* option = descriptor.options; option->name != nullptr; ++option) {
    for (const char* text : {option->name, option->unit, option->default_value, option->help}) {
      count(text);
    }
  }
  return bytes;
}

Result<> try_here(const std::string& path) {
  MR_TRY(const auto library, load_plugin(path));
  const auto& descriptor = *library.descriptor;
  if (bytes_described(descriptor) == 0) return refused(path, "its descriptor says nothing");
  // Whoever wants one says why there is none.
  if (auto* plugin = descriptor.create()) descriptor.destroy(plugin);
  return {};
}

}  // namespace

PluginTrial trial_by(std::string program, Duration limit) {
  return [program = std::move(program), limit](const std::string& path) {
    return try_by(program, path, limit);
  };
}

PluginTrial trial_by_this_program() { return trial_by(this_program, usual_limit); }

Result<PluginLibrary> load_tried(const std::string& path, std::string_view kind,
                                 const PluginTrial& trial) {
  MR_CHECK(inspect_plugin(path));
  if (trial && state_of_file(path) == FileState::not_mapped) MR_CHECK(trial(path));
  return load_plugin(path, kind);
}

int run_trial(const std::string& path) {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &none);  // what is tried may end us, and nobody wants to read that
  const auto tried = without_exceptions([&path] { return try_here(path); });
  if (tried) return 0;
  std::cout << tried.error().detail << std::flush;
  return exit_refused;
}

}  // namespace millrace::kernel
