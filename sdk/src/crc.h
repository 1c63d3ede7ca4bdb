// The ways to one crc: bytes.cc takes the fastest that the machine has. All of them are here so
// that a test can hold them against each other, and a benchmark tell them apart.
#pragma once

#include <cstdint>

#include <millrace/bytes.h>

namespace millrace::detail {

// Each continues `crc` over `bytes`, without the complement before and after.  [any thread]

std::uint32_t crc32c_portable(Bytes bytes, std::uint32_t crc) noexcept;
std::uint32_t crc32_portable(Bytes bytes, std::uint32_t crc) noexcept;

#if defined(__x86_64__)
bool has_crc32c_instruction() noexcept;
bool has_crc32c_three_way() noexcept;
/// One stream: each instruction waits for the one before.
std::uint32_t crc32c_by_instruction(Bytes bytes, std::uint32_t crc) noexcept;
/// Three streams side by side, put together by carry-less multiplication.
std::uint32_t crc32c_three_way(Bytes bytes, std::uint32_t crc) noexcept;

bool has_crc32_folding() noexcept;
/// Four streams of 16 bytes, each multiplied to where the next 64 bytes stand: for the polynomial
/// that no instruction has.
std::uint32_t crc32_by_folding(Bytes bytes, std::uint32_t crc) noexcept;
#endif

}  // namespace millrace::detail
