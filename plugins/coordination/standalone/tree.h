// Versioned keys in memory, and who waits for a change of them. Knows nothing of files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/coordination.h>

namespace millrace::standalone {

/// What a key becomes.
struct Change {
  std::string key;
  std::optional<Versioned> now;  ///< none: removed
};

/// [control thread]
class Tree {
 public:
  Result<Versioned> get(std::string_view key) const;
  std::vector<std::string> children(std::string_view prefix) const;

  /// What `writes` would do, one after the other, without doing it: the changes by key, and the new
  /// version of each write. Errors as Coordination::commit gives them.
  struct Planned {
    std::vector<Change> changes;
    std::vector<Version> versions;
  };
  Result<Planned> plan(const std::vector<Write>& writes) const;
  void apply(const std::vector<Change>& changes);

  /// Differs from an earlier one once something at or below `prefix` has changed since. Where
  /// nothing is below `prefix`, changes of its nearest ancestor that has keys count too.
  Seen seen(std::string_view prefix) const;

  /// Every key that is not ephemeral.
  std::vector<Change> persistent() const;

 private:
  struct Folder {
    std::int64_t revision = 0;
    std::int64_t keys = 0;  // at it and below
  };
  Result<> check_place(const Write& write) const;
  void touch(std::string_view key, std::int64_t keys_added);

  std::map<std::string, Versioned, std::less<>> keys_;
  std::map<std::string, Folder, std::less<>> folders_;  // of keys that are and all above them
  std::int64_t revision_ = 0;
  std::int64_t root_revision_ = 0;
};

}  // namespace millrace::standalone
