// A blocking connection, for loads that should cost the client next to nothing.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <millrace/buffer.h>
#include <millrace/payload.h>

namespace millrace::bench {

/// Failures are thrown as LoadFailed.
class Socket {
 public:
  explicit Socket(const std::string& address);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&&) = delete;
  ~Socket();

  int descriptor() const { return descriptor_; }
  void send(Bytes bytes);
  /// At least one byte, as many as are there.
  std::size_t receive_some(MutableBytes into);
  void receive_all(MutableBytes into);
  /// One answer, without its size.
  Buffer receive_frame();

 private:
  int descriptor_;
};

/// A frame in one piece.
Buffer flat(const Payload& payload);

}  // namespace millrace::bench
