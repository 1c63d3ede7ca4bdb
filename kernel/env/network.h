// TCP by the system's sockets.
#pragma once

#include <optional>

#include <millrace/environment.h>

namespace millrace::kernel {

/// Names are resolved by a worker: the system's resolver blocks.  [a loop of the environment]
class SocketNetwork final : public Network {
 public:
  /// `send_buffer_bytes`: of connections that are accepted; none: as the system finds best.
  SocketNetwork(BlockingPool& workers, std::optional<int> send_buffer_bytes)
      : workers_(workers), send_buffer_bytes_(send_buffer_bytes) {}

  /// Errc::conflict when another socket has the address, Errc::invalid_argument when it is none of
  /// this machine.
  Task<std::unique_ptr<Listener>> listen(Address address) override;
  Task<std::unique_ptr<Stream>> connect(Address address) override;

 private:
  BlockingPool& workers_;
  const std::optional<int> send_buffer_bytes_;
};

}  // namespace millrace::kernel
