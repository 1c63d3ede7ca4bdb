// The lines of ZooKeeper's client library, brought into the plugin's log.
#pragma once

#include <string>

#include <millrace/observe.h>

namespace millrace::zookeeper {

/// From its making to its end the library's lines go to `log`, at level debug: the session says
/// itself what an operator has to know. The library has one log for the whole process, so with
/// several instances the last one made gets all lines.  [any thread]
class LibraryLog {
 public:
  explicit LibraryLog(Log log);
  ~LibraryLog();
  LibraryLog(const LibraryLog&) = delete;
  LibraryLog& operator=(const LibraryLog&) = delete;

  /// For the library: takes one line of it.
  static void take(const char* line) noexcept;
  /// The last line of level error since the last call, without its time and place; "" for none.
  static std::string last_error();

 private:
  Log log_;
  LibraryLog* before_ = nullptr;
};

/// "2026-01-02 03:04:05,678:1234(0x7f…):ZOO_ERROR@check@12: refused" -> "refused".
std::string_view text_of_line(std::string_view line) noexcept;

}  // namespace millrace::zookeeper
