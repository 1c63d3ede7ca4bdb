// What a reload of the configuration finds.
#pragma once

#include <string>
#include <vector>

#include <millrace/operations.h>

namespace millrace::kernel {

/// For people, a line each.
struct ReloadOutcome {
  std::vector<std::string> done;
  std::vector<std::string> failed;
  std::vector<std::string> at_restart;  ///< options and plugins
};

/// The keys of options that are `wanted` other than they are `running` and that no reload changes:
/// all but the levels of the log and what streams are declared by. Both by key; the values of
/// secrets are not known here.
std::vector<std::string> changed_at_restart(const std::vector<SettingFact>& running,
                                            const std::vector<SettingFact>& wanted);

/// What counts after a reload, by key: of `wanted` what it changes, the rest as it is `running`.
std::vector<SettingFact> settings_after_reload(const std::vector<SettingFact>& running,
                                               const std::vector<SettingFact>& wanted);

/// What `systemctl status` shows of it behind what the broker does; nothing when all was done.
std::string status_of(const ReloadOutcome& outcome);

}  // namespace millrace::kernel
