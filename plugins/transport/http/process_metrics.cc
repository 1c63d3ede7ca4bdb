#include "process_metrics.h"

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::http_transport {
namespace {

/// In which the kernel tells times in /proc, on every machine (USER_HZ).
constexpr double ticks_per_second = 100;
constexpr std::size_t proc_file_bytes_max = 64 << 10;

/// The files of /proc tell no size: they are read until they end.
std::string read_proc(FileSystem& files, const std::string& path) {
  const auto file = files.open(path, OpenMode::read);
  if (!file) return {};
  std::string text;
  std::array<std::byte, 4096> chunk;
  while (text.size() < proc_file_bytes_max) {
    const auto bytes = (*file)->read_at(text.size(), chunk);
    if (!bytes) return {};
    if (*bytes == 0) break;
    text += as_text(Bytes(chunk).first(*bytes));
  }
  return text;
}

/// The number at the front, behind spaces and tabs.
std::optional<double> number_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{}) return std::nullopt;
  return number;
}

/// The number behind `name`, which begins a line: of "VmRSS:   1234 kB" 1234.
std::optional<double> number_after(std::string_view text, std::string_view name) {
  const auto line = '\n' + std::string(name);
  const auto at = text.starts_with(name) ? 0 : text.find(line);
  if (at == text.npos) return std::nullopt;
  return number_in(text.substr(at + (at == 0 ? name.size() : line.size())));
}

/// Field `number` of /proc/self/stat, from 3; the second is a name that may hold spaces.
std::optional<double> stat_field(std::string_view stat, int number) {
  auto at = stat.rfind(')');
  for (int field = 2; field < number && at != stat.npos; ++field) at = stat.find(' ', at + 1);
  if (at == stat.npos) return std::nullopt;
  return number_in(stat.substr(at));
}

class Families {
 public:
  void add(const char* name, const char* help, MetricType type, std::optional<double> value) {
    if (!value) return;
    families_.push_back({name, help, type, {{.value = *value}}});
  }
  std::vector<MetricFamily> take() { return std::move(families_); }

 private:
  std::vector<MetricFamily> families_;
};

std::optional<double> times(std::optional<double> number, double factor) {
  return number ? std::optional(*number * factor) : std::nullopt;
}
std::optional<double> sum(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

std::optional<double> start_time(std::string_view stat, std::string_view system) {
  return sum(number_after(system, "btime"), times(stat_field(stat, 22), 1 / ticks_per_second));
}

}  // namespace

std::vector<MetricFamily> process_metrics(FileSystem& files) {
  const auto stat = read_proc(files, "/proc/self/stat");
  const auto status = read_proc(files, "/proc/self/status");
  const auto limits = read_proc(files, "/proc/self/limits");
  const auto system = read_proc(files, "/proc/stat");
  const auto descriptors = files.list("/proc/self/fd");

  Families families;
  families.add("process_cpu_seconds_total", "User and system time spent, in seconds",
               MetricType::counter,
               times(sum(stat_field(stat, 14), stat_field(stat, 15)), 1 / ticks_per_second));
  families.add("process_max_fds", "Descriptors that may be open", MetricType::gauge,
               number_after(limits, "Max open files"));
  if (descriptors) {
    families.add("process_open_fds", "Open descriptors", MetricType::gauge,
                 static_cast<double>(descriptors->size()));
  }
  families.add("process_resident_memory_bytes", "Resident memory", MetricType::gauge,
               times(number_after(status, "VmRSS:"), 1024));
  families.add("process_start_time_seconds", "When the process began, in seconds since 1970",
               MetricType::gauge, start_time(stat, system));
  families.add("process_threads", "Threads", MetricType::gauge, stat_field(stat, 20));
  families.add("process_virtual_memory_bytes", "Virtual memory", MetricType::gauge,
               times(number_after(status, "VmSize:"), 1024));
  return families.take();
}

}  // namespace millrace::http_transport
