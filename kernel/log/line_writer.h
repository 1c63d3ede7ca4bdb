// Lines on their way to a file descriptor whose reader may be slow, or stall for good.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "kernel/log/journal.h"

namespace millrace::kernel {

/// A line for a LineWriter that has a journal: its entry there, and the line for stderr where the
/// journal refuses that.
std::string with_entry(std::string_view entry, std::string_view line);

/// Whoever has a line leaves it here and goes on; one thread, started by the first line, writes.
/// Lines that find no room are dropped and counted, and the reader is told as soon as there is one
/// again.  [any thread]
class LineWriter {
 public:
  /// What is told of so many dropped lines; a line itself.
  using TellDropped = std::function<std::string(std::uint64_t lines)>;

  /// `descriptor` stays the caller's. As many bytes again may be in the writing thread's hands.
  /// With a `journal` all that is pushed, or told of dropped lines, is made by with_entry().
  LineWriter(int descriptor, std::size_t bytes_max, TellDropped tell_dropped,
             std::unique_ptr<JournalSocket> journal = nullptr);
  /// Writes what is left, for at most a second if nobody reads it.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  /// `line` ends with '\n', unless there is a journal. Never waits for the descriptor.
  void push(std::string_view line) noexcept;
  /// Everything pushed so far is written or given up. Nothing but a read of an atomic, so that a
  /// signal handler may ask.
  bool idle() const noexcept { return idle_.load(); }

 private:
  void run();
  void hand_over(std::string_view text);
  bool send_entry(std::string_view entry);
  void write_out(std::string_view text);
  bool wait_until_writable(int descriptor);

  const int descriptor_;
  const std::size_t bytes_max_;
  const TellDropped tell_dropped_;
  const std::unique_ptr<JournalSocket> journal_;  // [the writing thread]
  std::atomic<bool> idle_{true};
  std::atomic<bool> stopping_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string lines_;                                 // guarded by mutex_
  std::uint64_t dropped_ = 0;                         // guarded by mutex_
  std::chrono::steady_clock::time_point give_up_at_;  // once stopping_
  std::thread thread_;                                // guarded by mutex_ until it is joined
};

}  // namespace millrace::kernel
