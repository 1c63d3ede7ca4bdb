#include "kernel/cli/progress_line.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <iostream>

namespace millrace::kernel::cli {

namespace {

constexpr const char* clear_line = "\r\x1b[K";

}  // namespace

ProgressLine::ProgressLine(const Clock& clock, Duration interval)
    : clock_(clock),
      interval_(interval),
      terminal_(::isatty(STDERR_FILENO) == 1),
      shown_(clock.now()) {}

ProgressLine::~ProgressLine() { clear(); }

bool ProgressLine::due() const { return terminal_ && clock_.now() - shown_ >= interval_; }

void ProgressLine::show(const std::string& text) {
  if (!due()) return;
  shown_ = clock_.now();
  on_screen_ = true;
  std::cerr << clear_line << text << std::flush;
}

void ProgressLine::clear() {
  if (!on_screen_) return;
  on_screen_ = false;
  std::cerr << clear_line << std::flush;
}

std::string human_bytes(double bytes) {
  constexpr std::array units{"B", "KB", "MB", "GB", "TB"};
  constexpr double step = 1000;
  std::size_t unit = 0;
  while (bytes >= step && unit + 1 < units.size()) {
    bytes /= step;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text.data();
}

}  // namespace millrace::kernel::cli
