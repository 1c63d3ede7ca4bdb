// A TOML document as plain values that know where they were written; several merge into one. The
// only file that sees toml++ is document.cc.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernel/config/config.h"

namespace millrace::kernel {

struct ConfigEntry;

/// Keys of one table, by name.
class ConfigTable {
 public:
  /// nullptr when there is none.
  const ConfigEntry* find(std::string_view key) const;
  /// The table under `key`; nullptr when there is none or it is something else.
  const ConfigTable* table(std::string_view key) const;
  const std::map<std::string, ConfigEntry, std::less<>>& entries() const noexcept {
    return entries_;
  }

  void put(std::string key, ConfigEntry entry);
  /// What `later` says wins; tables on both sides are merged.
  void merge(ConfigTable later);

 private:
  std::map<std::string, ConfigEntry, std::less<>> entries_;
};

/// A TOML type that no option has: dates and times.
struct ConfigDate {};

struct ConfigValue {
  using List = std::vector<ConfigValue>;

  ConfigPlace place;
  std::variant<std::string, std::int64_t, bool, double, List, ConfigTable, ConfigDate> value;
};

struct ConfigEntry {
  ConfigPlace key;
  ConfigValue value;
  /// Of `--set`: the value as written, for an option that is a text whatever it looks like.
  std::optional<std::string> written;
};

/// Where the values of a table are written.
OptionPlaces places_in(const ConfigTable& table);

/// `name` is what errors call the document. Stops at its first error, as TOML has no way to go on.
std::expected<ConfigTable, ConfigError> read_toml(std::string_view text, const std::string& name);

/// One `--set`: a dotted key as in TOML, "=", and a value as in TOML, else taken as a text.
std::expected<ConfigTable, ConfigError> read_set(const std::string& set);

/// `key` as it must stand in a dotted key: quoted unless it is bare.
std::string quoted_key(std::string_view key);

}  // namespace millrace::kernel
