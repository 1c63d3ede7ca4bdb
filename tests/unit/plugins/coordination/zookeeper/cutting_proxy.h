// A way to the server that the test can cut.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace millrace::zookeeper {

/// Hands on what comes over each connection, both ways, in a thread of its own.
class CuttingProxy {
 public:
  /// To a server on loopback.
  explicit CuttingProxy(std::uint16_t target);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  std::string address() const;
  /// Ends every connection, and those that come until heal().
  void cut();
  void heal();

 private:
  void serve() const;

  std::uint16_t target_;
  int listener_ = -1;
  int wake_[2] = {-1, -1};
  std::atomic<bool> cut_ = false;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace millrace::zookeeper
