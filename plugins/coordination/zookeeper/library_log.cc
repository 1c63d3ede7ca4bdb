#include "library_log.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>
#include <utility>

namespace millrace::zookeeper {

namespace {

// The library calls back without saying for whom.
constinit std::mutex guard;
constinit LibraryLog* latest = nullptr;
constinit std::array<char, 256> error_line{};

}  // namespace

std::string_view text_of_line(std::string_view line) noexcept {
  const auto level = line.find(":ZOO_");
  if (level == std::string_view::npos) return line;
  const auto place = line.find('@', level);
  const auto number = place == std::string_view::npos ? place : line.find('@', place + 1);
  const auto end = number == std::string_view::npos ? number : line.find(": ", number);
  return end == std::string_view::npos ? line : line.substr(end + 2);
}

LibraryLog::LibraryLog(Log log) : log_(std::move(log)) {
  const std::scoped_lock lock(guard);
  before_ = std::exchange(latest, this);
}

LibraryLog::~LibraryLog() {
  const std::scoped_lock lock(guard);
  auto** at = &latest;
  while (*at != this) at = &(*at)->before_;
  *at = before_;
}

void LibraryLog::take(const char* line) noexcept {
  const std::string_view whole(line);
  const auto text = text_of_line(whole);
  const std::scoped_lock lock(guard);
  if (!latest) return;
  if (whole.contains(":ZOO_ERROR@")) {
    const auto end = std::ranges::copy(text.substr(0, error_line.size() - 1), error_line.begin());
    *end.out = '\0';
  }
  if (!latest->log_.wants(LogLevel::debug)) return;
  latest->log_.debug("client library", {{"line", text}});
}

std::string LibraryLog::last_error() {
  const std::scoped_lock lock(guard);
  std::string error(error_line.data());
  error_line.front() = '\0';
  return error;
}

}  // namespace millrace::zookeeper
