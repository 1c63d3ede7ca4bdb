// The tables that the kernel itself declares.
#pragma once

#include <cstdint>

#include <millrace/options.h>

namespace millrace::kernel {

/// Names of the top-level tables.
namespace tables {
inline constexpr const char* broker = "broker";
inline constexpr const char* log = "log";
inline constexpr const char* log_levels = "levels";
inline constexpr const char* plugins = "plugins";
inline constexpr const char* compression = "compression";
inline constexpr const char* coordination = "coordination";
inline constexpr const char* storage = "storage";
inline constexpr const char* operators = "operators";
inline constexpr const char* transport = "transport";
inline constexpr const char* defaults = "defaults";
inline constexpr const char* cluster = "cluster";
inline constexpr const char* stream = "stream";
inline constexpr const char* topic = "topic";
}  // namespace tables

/// Bounds of a stream's `memory` and `timeout`, wherever it is declared.
inline constexpr std::int64_t stream_memory_bytes_min = std::int64_t{1} << 20;
inline constexpr std::int64_t stream_memory_bytes_max = std::int64_t{1} << 40;
inline constexpr std::int64_t stream_timeout_ms_max = 3'600'000;

const MillraceOption* broker_options() noexcept;
const MillraceOption* log_options() noexcept;
/// One entry, SUBSYSTEM: what every key of [log.levels] holds.
const MillraceOption* log_level_options() noexcept;
const MillraceOption* plugins_options() noexcept;
const MillraceOption* compression_options() noexcept;
const MillraceOption* operators_options() noexcept;
const MillraceOption* cluster_options() noexcept;
/// `plugin` of [coordination] and [storage], with the kind's default; of [transport.NAME], without.
const MillraceOption* coordination_options() noexcept;
const MillraceOption* storage_options() noexcept;
const MillraceOption* transport_options() noexcept;
/// [stream.NAME], and what every entry of its `steps` has beside the operator's options.
const MillraceOption* stream_options() noexcept;
const MillraceOption* stream_step_options() noexcept;
/// What [topic.NAME] has beside the settings of topics.
const MillraceOption* topic_table_options() noexcept;

}  // namespace millrace::kernel
