// TCP by the system's sockets.
#pragma once

#include <millrace/environment.h>

namespace millrace::kernel {

/// Names are resolved by a worker: the system's resolver blocks.  [a loop of the environment]
class SocketNetwork final : public Network {
 public:
  explicit SocketNetwork(BlockingPool& workers) : workers_(workers) {}

  /// Errc::conflict when another socket has the address, Errc::invalid_argument when it is none of
  /// this machine.
  Task<std::unique_ptr<Listener>> listen(Address address) override;
  Task<std::unique_ptr<Stream>> connect(Address address) override;

 private:
  BlockingPool& workers_;
};

}  // namespace millrace::kernel
