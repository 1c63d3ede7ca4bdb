#include "zookeeper_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

namespace millrace::zookeeper {

namespace {

using std::chrono::steady_clock;

constexpr auto start_wait_max = std::chrono::seconds(60);
constexpr long look_again_ns = 50'000'000;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

class Socket {
 public:
  Socket() : number_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() { ::close(number_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// Below the ports that the system gives to outgoing connections.
std::uint16_t free_port() {
  static std::mt19937 random(std::random_device{}());
  while (true) {
    const auto port = static_cast<std::uint16_t>(20000 + random() % 12000);
    const Socket probe;
    const auto address = loopback(port);
    if (::bind(probe.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      return port;
    }
  }
}

}  // namespace

ZooKeeperServer::Member ZooKeeperServer::free_ports() {
  return {.client_port = free_port(), .peer_port = free_port(), .election_port = free_port()};
}

ZooKeeperServer::ZooKeeperServer() : ZooKeeperServer(0, {free_ports()}) {}

ZooKeeperServer::ZooKeeperServer(std::size_t number, std::vector<Member> ensemble)
    : number_(number), ensemble_(std::move(ensemble)) {
  auto name = (std::filesystem::temp_directory_path() / "millrace-zookeeper-XXXXXX").string();
  folder_ = ::mkdtemp(name.data());
  write_config();
}

ZooKeeperServer::~ZooKeeperServer() {
  kill();
  std::filesystem::remove_all(folder_);
}

void ZooKeeperServer::write_config() {
  std::ofstream config(folder_ / "zoo.cfg");
  config << "tickTime=" << tick_ms
         << "\ninitLimit=20\nsyncLimit=4\ndataDir=" << (folder_ / "data").string()
         << "\nclientPort=" << ensemble_[number_].client_port
         << "\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n"
            "4lw.commands.whitelist=srvr,ruok,mntr,cons\n";
  std::filesystem::create_directories(folder_ / "data");
  if (ensemble_.size() == 1) return;
  for (std::size_t at = 0; at < ensemble_.size(); ++at) {
    config << "server." << at + 1 << "=127.0.0.1:" << ensemble_[at].peer_port << ':'
           << ensemble_[at].election_port << '\n';
  }
  std::ofstream(folder_ / "data" / "myid") << number_ + 1 << '\n';
}

Result<> ZooKeeperServer::start() {
  const auto config = (folder_ / "zoo.cfg").string();
  const auto log = (folder_ / "server.log").string();
  const std::vector<std::string> words{
      "java",
      "-Xmx96m",
      "-XX:+UseSerialGC",
      "-XX:TieredStopAtLevel=1",
      "-cp",
      "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar",
      "org.apache.zookeeper.server.quorum.QuorumPeerMain",
      config};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  const int error = ::posix_spawnp(&process_, "java", &files, nullptr, arguments.data(), ::environ);
  posix_spawn_file_actions_destroy(&files);
  if (error == 0) return {};
  process_ = -1;
  return Error{Errc::io, std::string("java: ") + std::strerror(error)};
}

Result<> ZooKeeperServer::wait_until_serving() {
  const auto give_up_at = steady_clock::now() + start_wait_max;
  while (!ask("srvr").contains("Mode:")) {
    int status = 0;
    if (::waitpid(process_, &status, WNOHANG) == process_) process_ = -1;
    if (process_ < 0 || steady_clock::now() > give_up_at) {
      std::stringstream text;
      text << std::ifstream(folder_ / "server.log").rdbuf();
      return Error{Errc::timed_out, "ZooKeeper does not serve:\n" + text.str()};
    }
    // The pause between two looks: the time in which the process may end.
    siginfo_t info{};
    const timespec pause{.tv_sec = 0, .tv_nsec = look_again_ns};
    sigset_t none;
    sigemptyset(&none);
    ::sigtimedwait(&none, &info, &pause);
  }
  return {};
}

void ZooKeeperServer::kill() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  process_ = -1;
}

void ZooKeeperServer::pause() const { ::kill(process_, SIGSTOP); }
void ZooKeeperServer::go_on() const { ::kill(process_, SIGCONT); }

std::string ZooKeeperServer::address() const {
  return "127.0.0.1:" + std::to_string(ensemble_[number_].client_port);
}

std::string ZooKeeperServer::ask(const std::string& command) const {
  const Socket socket;
  const auto address = loopback(ensemble_[number_].client_port);
  const timeval patience{.tv_sec = 2, .tv_usec = 0};
  ::setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
          0 ||
      ::send(socket.number(), command.data(), command.size(), MSG_NOSIGNAL) < 0) {
    return {};
  }
  std::string answer;
  char bytes[4096];
  while (true) {
    const auto taken = ::recv(socket.number(), bytes, sizeof bytes, 0);
    if (taken <= 0) return answer;
    answer.append(bytes, static_cast<std::size_t>(taken));
  }
}

}  // namespace millrace::zookeeper
