// Points in time as people write them.
#pragma once

#include <string>

#include <millrace/result.h>
#include <millrace/types.h>

namespace millrace::kernel::cli {

/// ISO 8601: "2026-11-29", "2026-11-29T10:00", "2026-11-29T10:00:00.250Z",
/// "2026-11-29T10:00:00+01:00"; without a zone UTC. Or "@" and milliseconds since 1970.
Result<Timestamp> parse_datetime(const std::string& text);

}  // namespace millrace::kernel::cli
