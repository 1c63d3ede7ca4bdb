// Memory: what there is for the broker and for the page cache, and who waits for it.
#include <algorithm>

#include "kernel/cli/doctor.h"
#include "kernel/cli/doctor_proc.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli::doctor {

namespace {

constexpr std::uint64_t all_percent = 100;
// What a broker takes beside broker.memory: code, open batches, threads.
constexpr std::uint64_t beside_bytes = std::uint64_t{256} << 20;

std::optional<std::uint64_t> number_in(const std::string& file, Probe& probe) {
  const auto text = probe.read(file);
  return text ? unsigned_of(*text) : std::nullopt;
}

struct Limit {
  std::string file;
  std::uint64_t bytes = 0;
};

// The least of the limits of `folder` and of those above it.
std::optional<Limit> least_limit(std::string_view root, std::string folder, const char* name,
                                 Probe& probe) {
  std::optional<Limit> least;
  while (true) {
    const auto file = concat(root, folder == "/" ? "" : folder, "/", name);
    const auto bytes = number_in(file, probe);  // "max" is no number, and no limit
    if (bytes && (!least || *bytes < least->bytes)) least = {file, *bytes};
    if (folder.size() <= 1) return least;
    folder.resize(std::max<std::size_t>(folder.rfind('/'), 1));
  }
}

// Of both generations of control groups: "0::/system.slice/x" and "4:memory:/x".
std::optional<Limit> memory_limit(std::string_view groups, Probe& probe) {
  std::optional<Limit> least;
  for (const auto line : lines_of(groups)) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const std::string folder(line.substr(second + 1));
    if (!folder.starts_with('/')) continue;
    std::optional<Limit> limit;
    if (controllers.empty()) {
      limit = least_limit("/sys/fs/cgroup", folder, "memory.max", probe);
    } else if (controllers == "memory") {
      limit = least_limit("/sys/fs/cgroup/memory", folder, "memory.limit_in_bytes", probe);
    }
    if (limit && (!least || limit->bytes < least->bytes)) least = std::move(limit);
  }
  return least;
}

Finding of_pressure(std::string_view resource, std::string_view meaning, std::string_view remedy,
                    const std::string& file, const Pressure& pressure) {
  constexpr double much_percent = 10;
  const auto check = concat("pressure.", resource);
  const auto evidence =
      concat(file, ": of the last minute some tasks waited ", static_cast<int>(pressure.some),
             " %, all ", static_cast<int>(pressure.full), " %");
  if (pressure.some >= much_percent) {
    return {check, Severity::warning, std::string(meaning), evidence, std::string(remedy)};
  }
  return {check, Severity::ok, concat("hardly anybody waits for ", resource), evidence, ""};
}

}  // namespace

Findings check_memory(const Patient& patient, Probe& probe) {
  const auto* check = "memory.size";
  const auto text = probe.read("/proc/meminfo");
  const auto total = text ? memory_field(*text, "MemTotal") : std::nullopt;
  const auto available = text ? memory_field(*text, "MemAvailable") : std::nullopt;
  if (!total || !available) {
    return {{check, Severity::warning, "the machine's memory could not be found out",
             text ? "/proc/meminfo: no MemTotal or no MemAvailable" : text.error().detail,
             "mount /proc"}};
  }
  const auto wanted = patient.number("broker.memory");
  const auto evidence =
      concat("broker.memory ", size_text(wanted), "; /proc/meminfo: ", size_text(*total),
             ", available ", size_text(*available));
  const auto* remedy = "lower broker.memory: the page cache, which serves consumers, has the rest";
  if (wanted >= *total) {
    return {
        {check, Severity::problem, "broker.memory is more than the machine has", evidence, remedy}};
  }
  if (wanted > *total / 2) {
    return {{check, Severity::warning, "broker.memory is more than half of the machine's memory",
             evidence, remedy}};
  }
  if (!patient.broker && *available < wanted + beside_bytes) {
    return {{check, Severity::warning, "others leave less memory than the broker may take",
             evidence, "find who has it (ps --sort -rss), or lower broker.memory"}};
  }
  return {
      {check, Severity::ok, "there is memory for the broker and for the page cache", evidence, ""}};
}

Findings check_memory_limit(const Patient& patient, Probe& probe) {
  const auto* check = "memory.limit";
  if (!patient.broker) return {};
  const auto groups = probe.read(concat("/proc/", patient.broker->pid, "/cgroup"));
  const auto total = probe.read("/proc/meminfo");
  if (!groups || !total) return {};
  const auto limit = memory_limit(*groups, probe);
  const auto machine = memory_field(*total, "MemTotal").value_or(0);
  if (!limit || (machine > 0 && limit->bytes >= machine)) {
    return {{check, Severity::ok, "the broker's control group sets no limit",
             concat("/proc/", patient.broker->pid, "/cgroup"), ""}};
  }
  const auto wanted = patient.number("broker.memory") + beside_bytes;
  const auto evidence = concat(limit->file, ": ", size_text(limit->bytes), "; the broker may take ",
                               size_text(wanted), ", and its page cache counts too");
  const auto* remedy =
      "raise the limit (systemctl edit millrace: MemoryMax=), or lower "
      "broker.memory";
  if (limit->bytes < wanted) {
    return {{check, Severity::problem, "the control group's limit is less than the broker may take",
             evidence, remedy}};
  }
  if (limit->bytes < 2 * wanted) {
    return {{check, Severity::warning, "the control group's limit leaves little for the page cache",
             evidence, remedy}};
  }
  return {{check, Severity::ok, "the control group's limit is high enough", evidence, ""}};
}

Findings check_swap(const Patient& /*patient*/, Probe& probe) {
  constexpr std::uint64_t eager = 10;
  const auto* check = "memory.swap";
  const auto memory = probe.read("/proc/meminfo");
  const std::string file = "/proc/sys/vm/swappiness";
  const auto swappiness = number_in(file, probe);
  if (!memory || !swappiness) return {};
  const auto swap = memory_field(*memory, "SwapTotal").value_or(0);
  const auto evidence = concat(file, ": ", *swappiness, "; /proc/meminfo: swap ", size_text(swap));
  if (swap > 0 && *swappiness > eager) {
    return {{check, Severity::warning,
             "the system swaps a broker's memory out in favour of its page cache", evidence,
             "sysctl -w vm.swappiness=1, and the same in a file of /etc/sysctl.d; or swapoff -a"}};
  }
  return {{check, Severity::ok, "a broker's memory stays in memory", evidence, ""}};
}

Findings check_pressure(const Patient& /*patient*/, Probe& probe) {
  Findings findings;
  const std::string memory = "/proc/pressure/memory";
  const std::string io = "/proc/pressure/io";
  const auto pressure_in = [&probe](const std::string& file) {
    const auto text = probe.read(file);
    return text ? pressure_of(*text) : std::nullopt;
  };
  if (const auto pressure = pressure_in(memory)) {
    findings.push_back(of_pressure("memory",
                                   "memory is short: the page cache is given up and read "
                                   "again",
                                   "give the machine more memory, or move what else runs "
                                   "there; a reader that is far behind reads from the disk",
                                   memory, *pressure));
  }
  if (const auto pressure = pressure_in(io)) {
    findings.push_back(of_pressure("io", "tasks wait for the disk",
                                   "find who reads and writes "
                                   "(iotop -o), or use a faster disk; data and logs of other "
                                   "programs belong on disks of their own",
                                   io, *pressure));
  }
  return findings;
}

Findings check_dirty_pages(const Patient& /*patient*/, Probe& probe) {
  constexpr std::uint64_t nearly_all_percent = 80;
  const auto* check = "memory.dirty";
  const auto memory = probe.read("/proc/meminfo");
  const auto ratio = number_in("/proc/sys/vm/dirty_ratio", probe);
  const auto available = memory ? memory_field(*memory, "MemAvailable") : std::nullopt;
  if (!ratio || !available) return {};
  const auto bytes = number_in("/proc/sys/vm/dirty_bytes", probe).value_or(0);
  const auto limit = bytes > 0 ? bytes : *available / all_percent * *ratio;
  const auto dirty =
      memory_field(*memory, "Dirty").value_or(0) + memory_field(*memory, "Writeback").value_or(0);
  const auto evidence = concat("/proc/meminfo: ", size_text(dirty), " to be written; from ",
                               size_text(limit), " on (vm.dirty_", bytes > 0 ? "bytes" : "ratio",
                               ") whoever writes waits for the disk");
  if (dirty > limit / all_percent * nearly_all_percent) {
    return {{check, Severity::warning, "the disk does not keep up with what is written", evidence,
             "use a faster disk; a lower vm.dirty_background_ratio begins to write earlier"}};
  }
  return {{check, Severity::ok, "the disk keeps up with what is written", evidence, ""}};
}

}  // namespace millrace::kernel::cli::doctor
