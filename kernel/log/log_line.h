// How an event becomes a line.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <millrace/observe.h>
#include <millrace/types.h>

namespace millrace::kernel {

struct LogEvent {
  Timestamp time;
  LogLevel level = LogLevel::info;
  std::string_view subsystem;
  std::string_view message;
  std::initializer_list<LogField> fields;
};

/// 2026-11-29T16:40:01.123Z INFO  storage.filelog: recovered partition=orders-3 cut_bytes=112
/// Values that hold spaces, quotes or control characters are quoted and escaped, so that an event
/// is one line and no value can look like another event. Ends with '\n'.
std::string text_line(const LogEvent& event);
/// {"time":"…","level":"info","subsystem":"…","message":"…","partition":"orders-3"}
std::string json_line(const LogEvent& event);

/// How lines look where they go.
struct LineStyle {
  bool json = false;
  /// The journal reads them: it takes a level from their front, and keeps the time itself.
  bool journal = false;
};
/// How the line of an event looks in a field of the journal: without a level in front, without
/// '\n'.
std::string journal_message(bool json, const LogEvent& event);

/// <4>WARN  storage.filelog: recovered partition=orders-3 cut_bytes=112
/// In the journal a line of text is without its time; an object keeps all it has.
std::string styled_line(LineStyle style, const LogEvent& event);

}  // namespace millrace::kernel
