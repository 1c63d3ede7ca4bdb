// Points in time as people write them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <millrace/result.h>
#include <millrace/types.h>

namespace millrace::kernel::cli {

/// ISO 8601: "2026-11-29", "2026-11-29T10:00", "2026-11-29T10:00:00.250Z",
/// "2026-11-29T10:00:00+01:00"; without a zone UTC. Or "@" and milliseconds since 1970.
Result<Timestamp> parse_datetime(const std::string& text);

/// "500ms", "90s", "15m", "2h", "7d", "2w", and several of them: "1h30m".
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// A point in time, or how long ago it was.
Result<Timestamp> parse_moment(const std::string& text, Timestamp now);

/// "2026-11-29T10:00:00.250Z"; of what is no time "-".
std::string datetime_text(Timestamp time);

}  // namespace millrace::kernel::cli
