// One declared option against one written value.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include <millrace/options.h>

#include "kernel/config/document.h"

namespace millrace::kernel {

/// nullptr when `options` (which ends with a null name) has no such name.
const MillraceOption* find_option(const MillraceOption* options, std::string_view name);
std::vector<std::string> names_of(const MillraceOption* options);
std::vector<std::string> choices_of(const MillraceOption& option);

/// What is allowed: "an integer from 0 to 100 (ms)", "one of \"text\", \"json\"".
std::string allowed(const MillraceOption& option);

/// The value of what was written, or what is wrong: "expected ..., found ...".
std::expected<OptionValue, std::string> value_of(const MillraceOption& option,
                                                 const ConfigEntry& entry);

/// The declared default; none when there is no default. Fails for a declaration that contradicts
/// itself, which is a mistake of whoever declared it.
std::expected<std::optional<OptionValue>, std::string> default_of(const MillraceOption& option);

/// Kafka's way to write a value: plain text, lists with commas.
std::string to_text(const OptionValue& value);

}  // namespace millrace::kernel
