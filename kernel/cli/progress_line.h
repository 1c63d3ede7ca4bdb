// A line on a terminal that tells how far long work is. Where stderr is none, nothing is written.
#pragma once

#include <string>

#include <millrace/environment.h>

namespace millrace::kernel::cli {

class ProgressLine {
 public:
  /// A text is shown no more often than each `interval`.
  ProgressLine(const Clock& clock, Duration interval);
  /// Takes the line away.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Whether show() would show something now.
  bool due() const;
  void show(const std::string& text);
  /// Before something else is printed.
  void clear();

 private:
  const Clock& clock_;
  const Duration interval_;
  const bool terminal_;
  MonoTime shown_;
  bool on_screen_ = false;
};

/// 12 B, 3.4 KB, 56.7 MB: for people.
std::string human_bytes(double bytes);

}  // namespace millrace::kernel::cli
