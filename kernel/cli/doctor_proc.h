// What the system's files say: /proc, /sys, /etc/passwd. Pure parsing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::kernel::cli::doctor {

std::optional<std::uint64_t> unsigned_of(std::string_view text);
std::vector<std::string_view> lines_of(std::string_view text);
/// Separated by spaces and tabs.
std::vector<std::string_view> words_of(std::string_view text);

/// The words behind "NAME:" at the begin of a line, as in /proc/meminfo and /proc/PID/status.
std::vector<std::string_view> field_of(std::string_view text, std::string_view name);
/// A size of /proc/meminfo, in bytes.
std::optional<std::uint64_t> memory_field(std::string_view meminfo, std::string_view name);

struct Mount {
  std::string point;
  std::string type;    ///< "ext4"
  std::string source;  ///< "/dev/sda1"
  std::vector<std::string> options;
};
/// Of the mounts in a mountinfo file, the one that `path` is on.
std::optional<Mount> mount_of(std::string_view mountinfo, std::string_view path);

/// The soft limit of a row of /proc/PID/limits; none when the row is not there. "unlimited" is the
/// largest number.
std::optional<std::uint64_t> limit_of(std::string_view limits, std::string_view name);

/// A row of /proc/pressure/*: how much of the last minute tasks waited, in percent.
struct Pressure {
  double some = 0;
  double full = 0;
};
std::optional<Pressure> pressure_of(std::string_view text);

/// A listening socket of /proc/net/tcp or tcp6.
struct ListeningSocket {
  std::uint16_t port = 0;
  std::string inode;
};
std::vector<ListeningSocket> listening_in(std::string_view table);

struct PasswdEntry {
  std::string name;
  std::uint32_t user = 0;
  std::uint32_t group = 0;
};
std::vector<PasswdEntry> passwd_entries(std::string_view passwd);

/// "3.2 GiB", "17 bytes".
std::string size_text(std::uint64_t bytes);
/// Of a whole that is not 0.
unsigned percent_of(std::uint64_t part, std::uint64_t whole);

}  // namespace millrace::kernel::cli::doctor
