// What a reload of the configuration finds.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/operations.h>

namespace millrace::kernel {

/// For people, a line each.
struct ReloadOutcome {
  std::vector<std::string> done;
  std::vector<std::string> failed;
  std::vector<std::string> left;        ///< what stays otherwise than it is declared, or waits
  std::vector<std::string> at_restart;  ///< options and plugins
};

/// Whether a reload takes the option over: it is declared as reloadable, or it is of what streams
/// and topics are declared by; or `more` names it, or begins it and ends in a dot.
bool is_reloaded(std::string_view key, const std::vector<std::string>& more = {});

/// The keys of options that are `wanted` other than they are `running` and that this reload does
/// not change. Both by key; the values of secrets are not known here.
std::vector<std::string> changed_at_restart(const std::vector<SettingFact>& running,
                                            const std::vector<SettingFact>& wanted,
                                            const std::vector<std::string>& more = {});

/// Of settings alone, without their plugins, which options belong to transports that come or go: a
/// reload starts and ends those, unless the broker needs one. As `more` of the others here.
std::vector<std::string> transports_that_change(const std::vector<SettingFact>& running,
                                                const std::vector<SettingFact>& wanted);

/// What counts after a reload, by key: of `wanted` what it changes, the rest as it is `running`.
std::vector<SettingFact> settings_after_reload(const std::vector<SettingFact>& running,
                                               const std::vector<SettingFact>& wanted,
                                               const std::vector<std::string>& more = {});

/// The same of `[defaults]`.
std::map<std::string, std::string> defaults_after_reload(
    const std::map<std::string, std::string>& running,
    const std::map<std::string, std::string>& wanted);

/// What `systemctl status` shows of it behind what the broker does; nothing when all was done.
std::string status_of(const ReloadOutcome& outcome);

}  // namespace millrace::kernel
