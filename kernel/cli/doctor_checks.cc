#include <array>
#include <iterator>

#include "kernel/cli/doctor.h"
#include "kernel/cli/doctor_proc.h"

namespace millrace::kernel::cli::doctor {

namespace {

// Of the machine, whatever runs there.
constexpr std::array of_machine{&check_swap, &check_pressure, &check_dirty_pages, &check_clock};

constexpr std::array of_broker{&check_plugins,    &check_data_folder,  &check_space,
                               &check_retention,  &check_file_system,  &check_inodes,
                               &check_process,    &check_open_files,   &check_map_count,
                               &check_memory,     &check_memory_limit, &check_ports,
                               &check_advertised, &check_zookeeper,    &check_cluster,
                               &check_health,     &check_scrubbed,     &check_version};

}  // namespace

std::string_view name_of(Severity severity) noexcept {
  switch (severity) {
    case Severity::ok: return "ok";
    case Severity::warning: return "warning";
    case Severity::problem: break;
  }
  return "problem";
}

std::string Patient::setting(std::string_view key) const {
  const auto found = settings.find(key);
  return found == settings.end() ? std::string() : found->second;
}

std::uint64_t Patient::number(std::string_view key) const {
  return unsigned_of(setting(key)).value_or(0);
}

Findings examine(const Patient& patient, Probe& probe) {
  auto findings = check_config(patient, probe);
  const auto look = [&](const auto& checks) {
    for (const Check check : checks) {
      auto found = check(patient, probe);
      std::ranges::move(found, std::back_inserter(findings));
    }
  };
  if (patient.config_wrong.empty()) look(of_broker);
  look(of_machine);
  return findings;
}

}  // namespace millrace::kernel::cli::doctor
