// Options as a test gives them.
#pragma once

#include <map>
#include <string>

#include <millrace/options.h>

namespace millrace::testing {

using OptionValues = std::map<std::string, OptionValue, std::less<>>;

/// What `declared` (which ends with a null name) says where nothing is set. A default that is not
/// of the option's type ends the process.
OptionValues defaults_of(const MillraceOption* declared);

}  // namespace millrace::testing
