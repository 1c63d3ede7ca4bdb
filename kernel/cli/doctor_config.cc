// The configuration and the plugins that it loads.
#include "kernel/cli/doctor.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli::doctor {

namespace {

Finding of_file(const Patient& patient, Probe& probe) {
  constexpr std::uint32_t others_may_read = 4;
  constexpr unsigned owner_shift = 6;
  constexpr unsigned group_shift = 3;
  const auto* check = "config";
  if (patient.config.empty()) {
    return {check, Severity::ok, "the embedded default is in use", "no --config", ""};
  }
  const auto file = probe.look_at(patient.config);
  if (!file) {
    return {check, Severity::problem, concat(patient.config, " cannot be read"),
            file.error().detail, "name the service's file with --config"};
  }
  const auto& user = patient.user;
  const auto shift = user.id == file->owner               ? owner_shift
                     : contains(user.groups, file->group) ? group_shift
                                                          : 0U;
  const auto evidence = concat(patient.config, ": owner ", file->owner, ", group ", file->group);
  if (user.id != 0 && (file->mode >> shift & others_may_read) == 0) {
    return {check, Severity::problem, concat("user ", user.name, " may not read ", patient.config),
            evidence, concat("chmod o+r ", patient.config, ", or chown it to ", user.name)};
  }
  return {check, Severity::ok, concat(patient.config, " is good"), evidence, ""};
}

}  // namespace

Findings check_config(const Patient& patient, Probe& probe) {
  const auto* check = "config";
  Findings findings;
  for (const auto& wrong : patient.config_wrong) {
    findings.push_back({check, Severity::problem, "the configuration is wrong", wrong.detail,
                        "mend it; millrace config check FILE tells when it is good, and millrace "
                        "config explain KEY what a key takes"});
  }
  if (findings.empty()) findings.push_back(of_file(patient, probe));
  for (const auto& remark : patient.config_remarks) {
    findings.push_back({check, Severity::warning, "the configuration says what is hardly meant",
                        remark, "mend it, or take it away"});
  }
  return findings;
}

Findings check_plugins(const Patient& patient, Probe& probe) {
  const auto* check = "plugins";
  Findings findings{{check, Severity::ok,
                     concat("all ", patient.plugins, " plugins of the configuration are found"),
                     "each fits this kernel", ""}};
  for (const auto& [path, reason] : probe.refused_plugins()) {
    findings.push_back({check, Severity::warning, concat(path, " is of no use"), reason,
                        "install the build of it that fits this version, or take the file away"});
  }
  return findings;
}

}  // namespace millrace::kernel::cli::doctor
