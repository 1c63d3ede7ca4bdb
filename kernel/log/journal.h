// The journal of systemd by its native protocol: an entry is a datagram of named fields. That is
// documented for those who send it themselves (systemd.io/JOURNAL_NATIVE_PROTOCOL), as we do:
// nobody may be held up here, and to build needs no package that is tied to the machine's init.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernel/log/log_line.h"

namespace millrace::kernel {

/// PRIORITY, SYSLOG_IDENTIFIER, MESSAGE, MILLRACE_SUBSYSTEM, and each field of the event under
/// MILLRACE_ and its name: partition is MILLRACE_PARTITION. `message`: the event as a line.
std::string journal_entry(const LogEvent& event, std::string_view message);

/// [one thread]
class JournalSocket {
 public:
  static constexpr const char* usual_path = "/run/systemd/journal/socket";

  enum class Sent { done, full, refused };

  /// `path`: of a socket, or '@' and an abstract name.
  explicit JournalSocket(const std::string& path);
  ~JournalSocket();
  JournalSocket(const JournalSocket&) = delete;
  JournalSocket& operator=(const JournalSocket&) = delete;

  bool is_connected() const noexcept { return descriptor_ >= 0; }
  /// Never waits. full: try again once descriptor() can be written to. refused: it is not there, or
  /// the entry is too large for it.
  Sent send(std::string_view entry) noexcept;
  int descriptor() const noexcept { return descriptor_; }

 private:
  void connect() noexcept;
  void close() noexcept;

  const std::string path_;
  int descriptor_ = -1;
};

}  // namespace millrace::kernel
