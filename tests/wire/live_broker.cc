#include "live_broker.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <millrace/kafka/api_versions.h>

namespace millrace::wire {

namespace {

constexpr auto start_wait_max = std::chrono::seconds(30);
constexpr std::size_t log_tail_bytes = 2000;

Error system_error(const std::string& what) {
  return {Errc::io, what + ": " + std::strerror(errno)};
}

}  // namespace

// ---- Link ----

Result<std::unique_ptr<Link>> Link::connect(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const auto port = std::to_string(address.port);
  if (const int code = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found); code != 0) {
    return Error{Errc::not_found, to_string(address) + ": " + gai_strerror(code)};
  }
  const std::unique_ptr<addrinfo, decltype([](addrinfo* list) { freeaddrinfo(list); })> list(found);
  const int socket = ::socket(list->ai_family, list->ai_socktype | SOCK_CLOEXEC, 0);
  if (socket < 0) return system_error("socket");
  std::unique_ptr<Link> link(new Link(socket));
  if (::connect(socket, list->ai_addr, list->ai_addrlen) != 0) {
    return system_error("connect to " + to_string(address));
  }
  return link;
}

Link::~Link() { ::close(socket_); }

Result<> Link::send(Bytes frame) {
  while (!frame.empty()) {
    const auto sent = ::send(socket_, frame.data(), frame.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return system_error("send");
    frame = frame.subspan(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<Buffer> Link::receive(std::chrono::milliseconds wait) {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  while (true) {
    MR_TRY(auto frame, reader_.next());
    if (frame) return *std::move(frame);
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ready{.fd = socket_, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) == 0) {
      return Error{Errc::timed_out, "nothing in " + std::to_string(wait.count()) + " ms"};
    }
    const auto space = reader_.space();
    const auto taken = ::recv(socket_, space.data(), space.size(), 0);
    if (taken < 0 && errno == EINTR) continue;
    // A reset is how a broker ends a connection that has sent more than it read.
    if (taken == 0 || (taken < 0 && errno == ECONNRESET)) {
      return Error{Errc::closed, "the broker closed the connection"};
    }
    if (taken < 0) return system_error("receive");
    reader_.filled(static_cast<std::size_t>(taken));
  }
}

void Link::finish_sending() noexcept { ::shutdown(socket_, SHUT_WR); }

Result<ServedApis> ask_served_apis(const Address& address) {
  MR_TRY(const auto link, Link::connect(address));
  MR_TRY(const auto answer, link->ask(kafka::ApiVersionsRequest{}, 0));
  ServedApis served;
  for (const auto& api : answer.api_keys) {
    served[api.api_key] = {api.min_version, api.max_version};
  }
  return served;
}

// ---- BrokerProcess ----

Result<std::unique_ptr<BrokerProcess>> BrokerProcess::start(
    const std::string& program, const std::vector<std::string>& settings) {
  auto folder = (std::filesystem::temp_directory_path() / "replay-session-XXXXXX").string();
  if (!::mkdtemp(folder.data())) return system_error(folder);
  std::unique_ptr<BrokerProcess> broker(new BrokerProcess(folder));
  MR_CHECK(broker->spawn(program, settings));
  MR_CHECK(broker->wait_until_it_listens());
  return broker;
}

Result<> BrokerProcess::spawn(const std::string& program,
                              const std::vector<std::string>& settings) {
  std::vector<std::string> words{program,
                                 "--set",
                                 "broker.data=" + folder_ + "/data",
                                 "--set",
                                 "transport.kafka.listen=127.0.0.1:0",
                                 "--set",
                                 "transport.http.listen=127.0.0.1:0"};
  for (const auto& setting : settings) {
    words.emplace_back("--set");
    words.push_back(setting);
  }
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  int log[2];
  if (::pipe2(log, O_CLOEXEC) != 0) return system_error("pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, log[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, log[1], STDERR_FILENO);
  errno = ::posix_spawn(&process_, arguments[0], &actions, nullptr, arguments.data(), environ);
  const int code = errno;
  posix_spawn_file_actions_destroy(&actions);
  ::close(log[1]);
  log_keeper_ = std::jthread([this, from = log[0]] { keep_log(from); });
  errno = code;
  if (code == 0) return {};
  process_ = -1;
  return system_error(words.front());
}

void BrokerProcess::keep_log(int from) {
  char chunk[4096];
  while (true) {
    const auto taken = ::read(from, chunk, sizeof chunk);
    if (taken < 0 && errno == EINTR) continue;
    const std::lock_guard lock(mutex_);
    if (taken <= 0) ended_ = true;
    if (taken > 0) log_.append(chunk, static_cast<std::size_t>(taken));
    log_changed_.notify_all();
    if (ended_) break;
  }
  ::close(from);
}

Result<> BrokerProcess::wait_until_it_listens() {
  static constexpr std::string_view mark = "listening transport=kafka address=";
  std::unique_lock lock(mutex_);
  std::size_t at = std::string::npos;
  log_changed_.wait_for(lock, start_wait_max, [&] {
    at = log_.find(mark);
    return ended_ || (at != std::string::npos && log_.find('\n', at) != std::string::npos);
  });
  if (at == std::string::npos) {
    const auto tail =
        log_.size() > log_tail_bytes ? log_.substr(log_.size() - log_tail_bytes) : log_;
    return Error{Errc::closed, "millraced does not listen; its log:\n" + tail};
  }
  at += mark.size();
  MR_TRY(address_,
         parse_address(std::string_view(log_).substr(at, log_.find_first_of(" \n", at) - at)));
  return {};
}

BrokerProcess::~BrokerProcess() {
  if (process_ > 0) {
    ::kill(process_, SIGTERM);
    int status = 0;
    ::waitpid(process_, &status, 0);
  }
  if (log_keeper_.joinable()) log_keeper_.join();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace millrace::wire
