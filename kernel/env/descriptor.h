// A file descriptor of a socket, and the waits for it.
#pragma once

#include <memory>

#include <millrace/task.h>

#include "kernel/env/event_loop.h"

namespace millrace::kernel {

/// Owns the descriptor, which is non-blocking. It is registered at its loop by the first wait, so
/// it may be made and dropped in another thread than the loop's until then. At most one wait in
/// each direction at a time; a wait that is cancelled leaves the descriptor as it was.  [its loop]
class Descriptor {
 public:
  Descriptor(EventLoop& loop, int number);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  /// -1 once closed.
  int number() const noexcept { return number_; }
  EventLoop& loop() const noexcept { return loop_; }
  bool closed() const noexcept { return number_ < 0; }
  /// Complete when a read (an accept) or a write would not block or would fail; Errc::closed after
  /// close(), Errc::cancelled when the environment stops.
  Pending<> readable();
  Pending<> writable();
  /// Idempotent.
  void close() noexcept;

 private:
  struct Watch;
  Watch& watch();

  EventLoop& loop_;
  int number_;
  std::shared_ptr<Watch> watch_;  // shared with the handlers that Asio holds
};

}  // namespace millrace::kernel
