// How the tables of settings write their rows.
#pragma once

#include <limits>

#include "kernel/partition/config_options.h"

namespace millrace::kernel::config_rows {

inline constexpr auto int16_max = std::numeric_limits<std::int16_t>::max();
inline constexpr auto int32_max = std::numeric_limits<std::int32_t>::max();
inline constexpr auto int64_max = std::numeric_limits<std::int64_t>::max();
inline constexpr const char* forever = "9223372036854775807";

inline constexpr std::int64_t ms_per_minute = 60'000;
inline constexpr std::int64_t ms_per_hour = 60 * ms_per_minute;

inline constexpr const char* codec_choices = "uncompressed|zstd|lz4|snappy|gzip|producer";
inline constexpr const char* timestamp_choices = "CreateTime|LogAppendTime";
inline constexpr const char* cleanup_choices = "compact|delete";

constexpr std::uint32_t flags_of(std::uint32_t traits) {
  return (traits & (config_dynamic | config_reread)) != 0 ? MILLRACE_OPTION_RELOADABLE : 0;
}

constexpr ConfigOption number(const char* name, const char* unit, const char* fallback,
                              std::int64_t minimum, std::int64_t maximum, const char* help,
                              std::uint32_t traits = 0) {
  return {{name, MILLRACE_OPTION_INTEGER, unit, fallback, minimum, maximum, nullptr, help,
           flags_of(traits)},
          traits};
}
constexpr ConfigOption ratio(const char* name, const char* fallback, const char* help,
                             std::uint32_t traits = 0) {
  return {{name, MILLRACE_OPTION_NUMBER, nullptr, fallback, 0, 1, nullptr, help, flags_of(traits)},
          traits};
}
constexpr ConfigOption real(const char* name, const char* unit, const char* fallback,
                            const char* help, std::uint32_t traits = 0) {
  return {{name, MILLRACE_OPTION_NUMBER, unit, fallback, unbounded_min, unbounded_max, nullptr,
           help, flags_of(traits)},
          traits};
}
constexpr ConfigOption flag(const char* name, const char* fallback, const char* help,
                            std::uint32_t traits = 0) {
  return {{name, MILLRACE_OPTION_BOOLEAN, nullptr, fallback, unbounded_min, unbounded_max, nullptr,
           help, flags_of(traits)},
          traits};
}
constexpr ConfigOption text(const char* name, const char* fallback, const char* choices,
                            const char* help, std::uint32_t traits = 0) {
  return {{name, MILLRACE_OPTION_TEXT, nullptr, fallback, unbounded_min, unbounded_max, choices,
           help, flags_of(traits)},
          traits};
}

}  // namespace millrace::kernel::config_rows
