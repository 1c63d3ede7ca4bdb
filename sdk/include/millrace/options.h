// Declared options: a plugin (and the kernel) says once what can be set; the kernel parses, checks
// bounds, reports file:line:column for what is wrong, and generates the reference from it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

extern "C" {

/// Types of an option's value. Durations and sizes are written as numbers in the option's unit.
enum MillraceOptionType {
  MILLRACE_OPTION_TEXT = 0,
  MILLRACE_OPTION_INTEGER = 1,
  MILLRACE_OPTION_BOOLEAN = 2,
  MILLRACE_OPTION_NUMBER = 3,
  MILLRACE_OPTION_TEXTS = 4,  ///< a list of texts
};

enum MillraceOptionFlags {
  MILLRACE_OPTION_REQUIRED = 1,
  MILLRACE_OPTION_RELOADABLE = 2,  ///< SIGHUP and the admin API change it in a running broker
  MILLRACE_OPTION_SECRET = 4,      ///< never printed
};

/// One option. C layout: read from a plugin's descriptor before any of its code runs. A list ends
/// with an entry whose name is null. Part of the frozen descriptor: never changes within a major.
struct MillraceOption {
  const char* name;
  std::uint32_t type;         ///< MillraceOptionType
  const char* unit;           ///< "ms", "bytes"; null for none
  const char* default_value;  ///< as it would stand in TOML without quotes; null for none
  std::int64_t minimum;       ///< of integers and numbers; minimum > maximum: unbounded
  std::int64_t maximum;
  const char* choices;  ///< "a|b|c" for texts; null: any
  const char* help;     ///< one sentence
  std::uint32_t flags;  ///< MillraceOptionFlags
};

}  // extern "C"

namespace millrace {

inline constexpr std::int64_t unbounded_min = 1;
inline constexpr std::int64_t unbounded_max = 0;

using OptionValue = std::variant<std::string, std::int64_t, bool, double, std::vector<std::string>>;

/// The values of one instance's options: checked, defaults filled in. Asking for a name that was
/// not declared, or as another type, is a bug of the caller and ends the process.  [any thread]
class Options {
 public:
  Options() = default;
  explicit Options(std::map<std::string, OptionValue, std::less<>> values)
      : values_(std::move(values)) {}

  const std::string& text(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  bool boolean(std::string_view name) const;
  double number(std::string_view name) const;
  const std::vector<std::string>& texts(std::string_view name) const;
  /// False for an option that has neither a value nor a default.
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  const std::map<std::string, OptionValue, std::less<>>& all() const noexcept { return values_; }

 private:
  std::map<std::string, OptionValue, std::less<>> values_;
};

}  // namespace millrace
