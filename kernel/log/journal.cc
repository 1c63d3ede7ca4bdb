#include "kernel/log/journal.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace millrace::kernel {

namespace {

/// What a name of a field may have at most.
constexpr std::size_t name_bytes_max = 64;
constexpr std::string_view own_prefix = "MILLRACE_";
/// Of the socket, half of what the system makes of it: a larger entry is refused everywhere alike.
constexpr int send_buffer_bytes = 128 << 10;

/// Those of syslog.
std::string_view priority_of(LogLevel level) {
  switch (level) {
    case LogLevel::trace:
    case LogLevel::debug: return "7";
    case LogLevel::info: return "6";
    case LogLevel::warning: return "4";
    case LogLevel::error: break;
  }
  return "3";
}

/// "cut_bytes" -> "MILLRACE_CUT_BYTES"
std::string own_name(std::string_view name) {
  std::string made(own_prefix);
  for (const char c : name.substr(0, name_bytes_max - own_prefix.size())) {
    if (c >= 'a' && c <= 'z') {
      made += static_cast<char>(c - 'a' + 'A');
    } else {
      const bool fits = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      made += fits ? c : '_';
    }
  }
  return made;
}

/// NAME=value; a value of several lines behind its length, the lowest byte first.
void add(std::string& entry, std::string_view name, std::string_view value) {
  entry += name;
  if (!value.contains('\n')) {
    entry += '=';
  } else {
    entry += '\n';
    auto length = static_cast<std::uint64_t>(value.size());
    for (std::size_t byte = 0; byte < sizeof length; ++byte, length >>= 8U) {
      entry += static_cast<char>(length & 0xffU);
    }
  }
  entry += value;
  entry += '\n';
}

}  // namespace

std::string journal_entry(const LogEvent& event, std::string_view message) {
  std::string entry;
  add(entry, "PRIORITY", priority_of(event.level));
  add(entry, "SYSLOG_IDENTIFIER", "millraced");
  add(entry, "MESSAGE", message);
  add(entry, "MILLRACE_SUBSYSTEM", event.subsystem);
  for (const auto& field : event.fields) add(entry, own_name(field.name), field.value);
  return entry;
}

JournalSocket::JournalSocket(const std::string& path) : path_(path) { connect(); }

JournalSocket::~JournalSocket() { close(); }

void JournalSocket::close() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void JournalSocket::connect() noexcept {
  sockaddr_un to{.sun_family = AF_UNIX, .sun_path = {}};
  if (path_.empty() || path_.size() >= sizeof to.sun_path) return;
  std::memcpy(to.sun_path, path_.data(), path_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path_.size());
  descriptor_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  ::setsockopt(descriptor_, SOL_SOCKET, SO_SNDBUF, &send_buffer_bytes, sizeof send_buffer_bytes);
  if (descriptor_ >= 0 &&
      ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&to), length) != 0) {
    close();
  }
}

JournalSocket::Sent JournalSocket::send(std::string_view entry) noexcept {
  // It was away, and may be there again.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (descriptor_ < 0) connect();
    if (descriptor_ < 0) return Sent::refused;
    if (::send(descriptor_, entry.data(), entry.size(), MSG_NOSIGNAL) >= 0) return Sent::done;
    if (errno == EAGAIN || errno == EINTR) return Sent::full;
    if (errno == EMSGSIZE || errno == ENOBUFS) return Sent::refused;
    close();
  }
  return Sent::refused;
}

}  // namespace millrace::kernel
