// Finds plugins: KIND/NAME.so in a list of folders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <millrace/result.h>

namespace millrace::kernel {

/// The kinds, in the order in which they start.
inline constexpr std::string_view plugin_kinds[] = {"compression", "coordination", "storage",
                                                    "operators", "transport"};

/// The kind that somebody means who writes it in the singular or the plural; what is none stays as
/// it is.
std::string kind_meant(std::string_view word);

/// [start-up]
class PluginFiles {
 public:
  /// The folder of `configured` that has a file wins over later ones, those over
  /// `../lib/millrace/plugins` beside the running program, that over /usr/lib/millrace/plugins.
  explicit PluginFiles(std::vector<std::string> configured = {});

  /// The path of KIND/NAME.so. Errc::not_found says where it was looked for and the nearest name.
  Result<std::string> find(std::string_view kind, std::string_view name) const;
  /// Every plugin of a kind, by name, sorted.
  std::vector<std::string> names(std::string_view kind) const;
  const std::vector<std::string>& folders() const noexcept { return folders_; }

 private:
  std::vector<std::string> folders_;
};

}  // namespace millrace::kernel
