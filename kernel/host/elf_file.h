// What a shared object says about itself, read from its bytes: none of its code runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <millrace/result.h>

namespace millrace::kernel {

/// The symbols that the shared object at `path` exports. Errc::not_found when there is no such
/// file, Errc::incompatible when it is not a whole ELF shared object for this machine; both say
/// what was found and what to do, without the path.
Result<std::vector<std::string>> exported_symbols(const std::string& path);

/// The text at the start of the section called `name`; empty when there is no such section. Errors
/// as above.
Result<std::string> text_of_section(const std::string& path, std::string_view name);

}  // namespace millrace::kernel
