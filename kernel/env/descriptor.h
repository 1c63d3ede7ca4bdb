// A file descriptor of a socket, and the waits for it.
#pragma once

#include <cstdint>

#include <millrace/task.h>

#include "kernel/env/event_loop.h"

namespace millrace::kernel {

/// Owns the descriptor, which is non-blocking. It is registered at its loop by the first wait, so
/// it may be made and dropped in another thread than the loop's until then. At most one wait in
/// each direction at a time; a wait that is cancelled leaves the descriptor as it was.  [its loop]
///
/// Whoever reads waits again and again: the descriptor stays watched for reading until something
/// comes and nobody waits. A wait for writing is the exception, and asked for each time.
class Descriptor final : LoopWatch {
 public:
  Descriptor(EventLoop& loop, int number);
  ~Descriptor() override;
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
  Pending<> wait(Resolver<>& waiter, std::uint32_t events);
  void end(const Error& error) noexcept;

  // LoopWatch
  void on_events(std::uint32_t events) noexcept override;
  void cancel_waits() noexcept override;

  EventLoop& loop_;
  int number_;
  std::uint32_t watched_ = 0;  // of epoll's events
  Resolver<> reader_;
  Resolver<> writer_;
};

}  // namespace millrace::kernel
