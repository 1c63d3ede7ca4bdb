// What a client may do (KIP-430): everything, as long as nothing is forbidden to anybody.
#pragma once

#include <cstdint>

namespace millrace::kafka_transport {

/// Bits of the protocol's authorized-operations fields.
namespace operation {
inline constexpr std::int32_t read = 1 << 3;
inline constexpr std::int32_t write = 1 << 4;
inline constexpr std::int32_t create = 1 << 5;
inline constexpr std::int32_t remove = 1 << 6;
inline constexpr std::int32_t alter = 1 << 7;
inline constexpr std::int32_t describe = 1 << 8;
inline constexpr std::int32_t cluster_action = 1 << 9;
inline constexpr std::int32_t describe_configs = 1 << 10;
inline constexpr std::int32_t alter_configs = 1 << 11;
inline constexpr std::int32_t idempotent_write = 1 << 12;
}  // namespace operation

inline constexpr std::int32_t topic_operations =
    operation::read | operation::write | operation::create | operation::remove | operation::alter |
    operation::describe | operation::describe_configs | operation::alter_configs;

inline constexpr std::int32_t group_operations = operation::read | operation::remove |
                                                 operation::describe | operation::describe_configs |
                                                 operation::alter_configs;

inline constexpr std::int32_t cluster_operations =
    operation::create | operation::alter | operation::describe | operation::cluster_action |
    operation::describe_configs | operation::alter_configs | operation::idempotent_write;

}  // namespace millrace::kafka_transport
