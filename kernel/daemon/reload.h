// What a reload of the configuration finds.
#pragma once

#include <string>
#include <vector>

#include <millrace/operations.h>

namespace millrace::kernel {

/// The keys of options that are `wanted` other than they are `running` and that no reload changes:
/// all but the levels of the log. Both by key; the values of secrets are not known here.
std::vector<std::string> changed_at_restart(const std::vector<SettingFact>& running,
                                            const std::vector<SettingFact>& wanted);

}  // namespace millrace::kernel
