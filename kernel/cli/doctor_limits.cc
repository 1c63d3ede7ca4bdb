// The running process, and what the system lets it have.
#include <algorithm>

#include "kernel/cli/doctor.h"
#include "kernel/cli/doctor_proc.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli::doctor {

namespace {

constexpr std::uint64_t all_percent = 100;

std::string proc(const BrokerProcess& broker, std::string_view name) {
  return concat("/proc/", broker.pid, "/", name);
}

std::optional<BrokerProcess> process_of(std::uint64_t pid, std::string found_by, Probe& probe) {
  const auto folder = concat("/proc/", pid);
  const auto name = probe.read(folder + "/comm");
  if (!name || words_of(*name) != std::vector<std::string_view>{"millraced"}) return std::nullopt;
  BrokerProcess broker{.pid = static_cast<std::uint32_t>(pid),
                       .found_by = std::move(found_by),
                       .user = 0,
                       .groups = {}};
  const auto status = probe.read(folder + "/status");
  if (!status) return broker;
  const auto first_of = [&status](std::string_view field) {
    const auto words = field_of(*status, field);
    return static_cast<std::uint32_t>(words.empty() ? 0 : unsigned_of(words.front()).value_or(0));
  };
  broker.user = first_of("Uid");
  broker.groups.push_back(first_of("Gid"));
  for (const auto word : field_of(*status, "Groups")) {
    if (const auto group = unsigned_of(word)) {
      broker.groups.push_back(static_cast<std::uint32_t>(*group));
    }
  }
  return broker;
}

struct Segments {
  std::uint64_t count = 0;
  std::uint64_t partitions = 0;
};

Segments segments_below(const std::string& data, Probe& probe) {
  Segments segments;
  const auto folders = probe.list(data);
  if (!folders) return segments;
  for (const auto& folder : *folders) {
    const auto files = probe.list(concat(data, "/", folder));
    if (!files) continue;
    const auto logs = std::ranges::count_if(
        *files, [](const std::string& name) { return name.ends_with(".log"); });
    segments.count += static_cast<std::uint64_t>(logs);
    segments.partitions += logs > 0 ? 1 : 0;
  }
  return segments;
}

std::uint64_t connections_max(const Patient& patient) {
  std::uint64_t sum = 0;
  for (const auto& listener : patient.listeners) {
    sum += patient.number(concat("transport.", listener.name, ".\"max.connections\""));
  }
  return sum;
}

}  // namespace

std::optional<BrokerProcess> find_broker(const std::string& data, Probe& probe) {
  // A storage that keeps nothing there has no lock in it; whoever coordinates has.
  for (const auto* name : {"/.lock", "/coordination.lock"}) {
    const auto lock = data + name;
    const auto owner = probe.read(lock);
    const auto pid = owner ? unsigned_of(*owner) : std::nullopt;
    if (auto broker = pid ? process_of(*pid, lock, probe) : std::nullopt) return broker;
  }
  // A user who may not look into the folder still sees what systemd runs.
  const std::string of_unit = "/sys/fs/cgroup/system.slice/millrace.service/cgroup.procs";
  if (const auto processes = probe.read(of_unit)) {
    for (const auto line : lines_of(*processes)) {
      const auto pid = unsigned_of(line);
      if (auto broker = pid ? process_of(*pid, of_unit, probe) : std::nullopt) return broker;
    }
  }
  return std::nullopt;
}

ServiceUser service_user(const std::string& wanted, const std::optional<BrokerProcess>& broker,
                         Probe& probe) {
  const auto passwd = probe.read("/etc/passwd");
  const auto entries = passwd ? passwd_entries(*passwd) : std::vector<PasswdEntry>();
  const auto found = [&](auto matches) -> std::optional<ServiceUser> {
    const auto entry = std::ranges::find_if(entries, matches);
    if (entry == entries.end()) return std::nullopt;
    return ServiceUser{entry->name, entry->user, {entry->group}};
  };
  const auto named = [&](std::string_view name) {
    return found([name](const PasswdEntry& entry) { return entry.name == name; });
  };
  const auto numbered = [&](std::uint32_t id) {
    return found([id](const PasswdEntry& entry) { return entry.user == id; })
        .value_or(ServiceUser{concat("number ", id), id, {}});
  };
  if (!wanted.empty()) return named(wanted).value_or(ServiceUser{wanted, ~std::uint32_t{0}, {}});
  if (broker) {
    auto user = numbered(broker->user);
    user.groups = broker->groups;
    return user;
  }
  if (probe.user() == 0) {
    if (auto packaged = named("millrace")) return *std::move(packaged);
  }
  return numbered(probe.user());
}

Findings check_process(const Patient& patient, Probe& /*probe*/) {
  const auto* check = "broker.process";
  if (patient.broker) {
    return {{check, Severity::ok, concat("the broker runs as process ", patient.broker->pid),
             concat(patient.broker->found_by, ", /proc/", patient.broker->pid, "/comm"), ""}};
  }
  return {{check, Severity::warning, "no broker runs here",
           concat("no lock in ", patient.data(), " names a process that is one, nor does systemd"),
           "systemctl start millrace; why it ended is in journalctl -u millrace"}};
}

Findings check_open_files(const Patient& patient, Probe& probe) {
  constexpr std::uint64_t nearly_all_percent = 80;
  constexpr std::uint64_t files_of_a_segment = 3;
  constexpr std::uint64_t for_the_rest = 64;
  const auto* check = "limits.files";
  if (!patient.broker) return {};
  const auto limits = probe.read(proc(*patient.broker, "limits"));
  const auto limit = limits ? limit_of(*limits, "Max open files") : std::nullopt;
  if (!limit) {
    return {{check, Severity::warning, "the limit of open files could not be found out",
             limits ? "no such row" : limits.error().detail,
             "run this as root or as the service's user"}};
  }
  const auto open = probe.list(proc(*patient.broker, "fd"));
  const auto segments = segments_below(patient.data(), probe);
  const auto kept_open = std::min(segments.count, patient.number("storage.open_files_max"));
  const auto wanted = kept_open * files_of_a_segment + connections_max(patient) + for_the_rest;
  const auto evidence = concat(
      proc(*patient.broker, "limits"), ": ", *limit,
      "; open now: ", open ? std::to_string(open->size()) : "not to be seen by this user",
      "; at most ", wanted, " of ", segments.count, " segments and all connections that may be");
  const auto* remedy =
      "systemctl edit millrace: LimitNOFILE=1048576; or lower "
      "storage.open_files_max and max.connections";
  if (open && open->size() + for_the_rest >= *limit) {
    return {{check, Severity::problem, "the broker is out of open files", evidence, remedy}};
  }
  if (open && open->size() > *limit / all_percent * nearly_all_percent) {
    return {{check, Severity::warning, "the broker is nearly out of open files", evidence, remedy}};
  }
  if (wanted > *limit) {
    return {{check, Severity::warning,
             "what the configuration allows needs more open files than the limit", evidence,
             remedy}};
  }
  return {{check, Severity::ok, "the limit of open files is high enough", evidence, ""}};
}

Findings check_map_count(const Patient& patient, Probe& probe) {
  constexpr std::uint64_t nearly_all_percent = 80;
  constexpr std::uint64_t usual = 65'530;
  const auto* check = "limits.maps";
  const std::string file = "/proc/sys/vm/max_map_count";
  const auto text = probe.read(file);
  const auto limit = text ? unsigned_of(*text) : std::nullopt;
  if (!limit) return {};  // no such system
  std::uint64_t used = 0;
  auto evidence = concat(file, ": ", *limit);
  if (patient.broker) {
    if (const auto maps = probe.read(proc(*patient.broker, "maps"))) {
      used = lines_of(*maps).size();
      evidence += concat("; the broker has ", used);
    }
  }
  if (*limit < usual || used > *limit / all_percent * nearly_all_percent) {
    return {{check, Severity::warning, "few more memory areas may be mapped", evidence,
             "sysctl -w vm.max_map_count=262144, and the same in a file of /etc/sysctl.d"}};
  }
  return {{check, Severity::ok, "memory areas may be mapped as needed", evidence, ""}};
}

}  // namespace millrace::kernel::cli::doctor
