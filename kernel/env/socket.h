// Connected and listening TCP sockets of one loop.
#pragma once

#include <memory>
#include <string>

#include <sys/socket.h>

#include <millrace/environment.h>

#include "kernel/env/descriptor.h"

namespace millrace::kernel {

/// Host and port in figures of a socket address; IPv4 mapped into IPv6 shows as IPv4.
Address address_of(const sockaddr_storage& socket_address);

/// A TCP connection. Its calls hold the socket, so that the stream may be destroyed while one
/// waits.
/// Whoever reads slowly may find a file's bytes gone from memory when it has room for them: a
/// worker brings them back.
class SocketStream final : public Stream {
 public:
  SocketStream(std::unique_ptr<Descriptor> connected, Address peer, BlockingPool& workers);
  ~SocketStream() override { close(); }

  Task<std::size_t> receive(MutableBytes space) override;
  Task<> send(Payload payload) override;
  void close() noexcept override;
  const Address& peer() const noexcept override;

  struct Socket;

 private:
  std::shared_ptr<Socket> socket_;
};

class SocketListener final : public Listener {
 public:
  /// `workers`: those of the streams that it accepts.
  SocketListener(EventLoop& loop, std::unique_ptr<Descriptor> listening, Address local,
                 BlockingPool& workers);
  ~SocketListener() override { close(); }

  Task<std::unique_ptr<Stream>> accept(Shard& owner) override;
  const Address& local() const noexcept override;
  void close() noexcept override;

  struct Socket;

 private:
  std::shared_ptr<Socket> socket_;
};

}  // namespace millrace::kernel
