#include "kernel/cli/doctor_proc.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <limits>

namespace millrace::kernel::cli::doctor {

namespace {

template <std::integral T>
std::optional<T> number_from(std::string_view text, int base = 10) {
  T number{};
  const auto* begin = text.data();
  const auto* end = begin + text.size();
  const auto [at, error] = std::from_chars(begin, end, number, base);
  if (error != std::errc() || at != end) return std::nullopt;
  return number;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return parts;
    text.remove_prefix(begin);
    const auto end = text.find_first_of(separators);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end);
  }
}

// mountinfo writes what would end a word as "\040".
std::string unescaped(std::string_view text) {
  constexpr std::size_t escape_bytes = 4;
  std::string plain;
  while (!text.empty()) {
    if (text.front() == '\\' && text.size() >= escape_bytes) {
      if (const auto code = number_from<unsigned>(text.substr(1, 3), 8)) {
        plain += static_cast<char>(*code);
        text.remove_prefix(escape_bytes);
        continue;
      }
    }
    plain += text.front();
    text.remove_prefix(1);
  }
  return plain;
}

bool is_at_or_below(std::string_view path, std::string_view folder) {
  if (folder == "/") return path.starts_with('/');
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

// "36 35 98:0 /root /point rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue"
std::optional<Mount> mount_from(std::string_view line) {
  constexpr std::size_t point_at = 4;
  constexpr std::size_t options_at = 5;
  const auto words = words_of(line);
  const auto dash = std::ranges::find(words, "-");
  if (dash - words.begin() <= static_cast<std::ptrdiff_t>(options_at) || words.end() - dash < 3) {
    return std::nullopt;
  }
  Mount mount{.point = unescaped(words[point_at]),
              .type = std::string(dash[1]),
              .source = unescaped(dash[2]),
              .options = {}};
  for (const auto option : split(words[options_at], ",")) mount.options.emplace_back(option);
  // A file system that is read-only as a whole says so here, whatever the mount says.
  if (words.end() - dash > 3) {
    for (const auto option : split(dash[3], ",")) mount.options.emplace_back(option);
  }
  return mount;
}

double average_of_a_minute(std::string_view line) {
  constexpr std::string_view name = "avg60=";
  for (const auto word : words_of(line)) {
    if (!word.starts_with(name)) continue;
    double percent = 0;
    std::from_chars(word.data() + name.size(), word.data() + word.size(), percent);
    return percent;
  }
  return 0;
}

}  // namespace

std::optional<std::uint64_t> unsigned_of(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with(' ')) text.remove_suffix(1);
  return number_from<std::uint64_t>(text);
}

std::vector<std::string_view> lines_of(std::string_view text) { return split(text, "\n"); }
std::vector<std::string_view> words_of(std::string_view text) { return split(text, " \t\n"); }

std::vector<std::string_view> field_of(std::string_view text, std::string_view name) {
  for (const auto line : lines_of(text)) {
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      return words_of(line.substr(name.size() + 1));
    }
  }
  return {};
}

std::optional<std::uint64_t> memory_field(std::string_view meminfo, std::string_view name) {
  constexpr std::uint64_t kilobyte = 1024;
  const auto words = field_of(meminfo, name);
  const auto number = words.empty() ? std::nullopt : unsigned_of(words.front());
  if (!number) return std::nullopt;
  return *number * kilobyte;
}

std::optional<Mount> mount_of(std::string_view mountinfo, std::string_view path) {
  std::optional<Mount> found;
  for (const auto line : lines_of(mountinfo)) {
    auto mount = mount_from(line);
    if (!mount || !is_at_or_below(path, mount->point)) continue;
    // The longest; of those mounted over each other, the last.
    if (!found || mount->point.size() >= found->point.size()) found = std::move(mount);
  }
  return found;
}

std::optional<std::uint64_t> limit_of(std::string_view limits, std::string_view name) {
  for (const auto line : lines_of(limits)) {
    if (!line.starts_with(name)) continue;
    const auto words = words_of(line.substr(name.size()));
    if (words.empty()) return std::nullopt;
    if (words.front() == "unlimited") return std::numeric_limits<std::uint64_t>::max();
    return unsigned_of(words.front());
  }
  return std::nullopt;
}

std::optional<Pressure> pressure_of(std::string_view text) {
  std::optional<Pressure> pressure;
  for (const auto line : lines_of(text)) {
    if (line.starts_with("some ")) {
      pressure.emplace(pressure.value_or(Pressure())).some = average_of_a_minute(line);
    } else if (line.starts_with("full ")) {
      pressure.emplace(pressure.value_or(Pressure())).full = average_of_a_minute(line);
    }
  }
  return pressure;
}

std::vector<ListeningSocket> listening_in(std::string_view table) {
  constexpr std::size_t local_at = 1;
  constexpr std::size_t state_at = 3;
  constexpr std::size_t inode_at = 9;
  constexpr std::string_view listening = "0A";
  std::vector<ListeningSocket> sockets;
  for (const auto line : lines_of(table)) {
    const auto words = words_of(line);
    if (words.size() <= inode_at || words[state_at] != listening) continue;
    const auto colon = words[local_at].rfind(':');
    if (colon == std::string_view::npos) continue;
    const auto port = number_from<std::uint16_t>(words[local_at].substr(colon + 1), 16);
    if (port) sockets.push_back({*port, std::string(words[inode_at])});
  }
  return sockets;
}

std::vector<PasswdEntry> passwd_entries(std::string_view passwd) {
  std::vector<PasswdEntry> entries;
  for (auto line : lines_of(passwd)) {
    // NAME:x:UID:GID:…; fields may be empty, so they are not words.
    std::array<std::string_view, 4> fields;
    for (auto& field : fields) {
      const auto colon = line.find(':');
      field = line.substr(0, colon);
      line.remove_prefix(colon == std::string_view::npos ? line.size() : colon + 1);
    }
    const auto user = number_from<std::uint32_t>(fields[2]);
    const auto group = number_from<std::uint32_t>(fields[3]);
    if (user && group) entries.push_back({std::string(fields[0]), *user, *group});
  }
  return entries;
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t step = 1024;
  constexpr std::array units{"KiB", "MiB", "GiB", "TiB"};
  if (bytes < step) return std::to_string(bytes) + " bytes";
  std::size_t unit = 0;
  std::uint64_t size = step;
  while (unit + 1 < units.size() && bytes / size >= step) {
    size *= step;
    ++unit;
  }
  // Rounded down, so that little is never shown as more.
  return std::to_string(bytes / size) + '.' + std::to_string(bytes % size * 10 / size) + ' ' +
         units[unit];
}

unsigned percent_of(std::uint64_t part, std::uint64_t whole) {
  constexpr double all = 100;
  return static_cast<unsigned>(static_cast<double>(part) / static_cast<double>(whole) * all);
}

}  // namespace millrace::kernel::cli::doctor
