// Debian's ZooKeeper as a process of the test: on loopback, over a temporary folder.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <millrace/result.h>

namespace millrace::zookeeper {

/// One server, or one member of an ensemble. Its end, and that of its data, is the object's.
class ZooKeeperServer {
 public:
  struct Member {
    std::uint16_t client_port = 0;
    std::uint16_t peer_port = 0;
    std::uint16_t election_port = 0;
  };
  /// What the shortest session time-out is two of.
  static constexpr int tick_ms = 500;

  /// A server alone, on a free port. Not started yet.
  ZooKeeperServer();
  /// Member `number` of `ensemble`.
  ZooKeeperServer(std::size_t number, std::vector<Member> ensemble);
  ~ZooKeeperServer();
  ZooKeeperServer(const ZooKeeperServer&) = delete;
  ZooKeeperServer& operator=(const ZooKeeperServer&) = delete;

  static Member free_ports();

  /// On the same data and port as before.
  Result<> start();
  /// Waits until it serves, which a member does once there is a majority.
  Result<> wait_until_serving();
  void kill();
  void pause() const;
  void go_on() const;

  std::uint16_t port() const { return ensemble_[number_].client_port; }
  std::string address() const;
  /// The answer to one of its four letter commands; "" when nobody answers.
  std::string ask(const std::string& command) const;

 private:
  void write_config();

  std::size_t number_ = 0;
  std::vector<Member> ensemble_;
  std::filesystem::path folder_;
  pid_t process_ = -1;
};

}  // namespace millrace::zookeeper
