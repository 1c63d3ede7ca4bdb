// The keys of a simulated coordination: versions, owners, and since when each is as it is.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/coordination.h>

namespace millrace::testing {

class SimKeyTree {
 public:
  Result<Versioned> get(std::string_view key) const;
  std::vector<std::string> children(std::string_view prefix) const;
  /// All or nothing, by `session`. Errors as Coordination::commit gives them; beyond
  /// commit_bytes_max always Errc::too_large.
  Result<std::vector<Version>> commit(const std::vector<Write>& writes, std::int64_t session);
  Seen seen(std::string_view prefix) const;
  void remove_all_of(std::int64_t session);

 private:
  struct Key {
    std::string value;
    Version version = 0;
    std::int64_t owner = 0;  // a session, or 0
  };
  using Keys = std::map<std::string, Key, std::less<>>;

  static Result<Version> apply(Keys& keys, const Write& write, std::int64_t session);
  void touch(std::string_view key);

  Keys keys_;
  std::map<std::string, std::int64_t, std::less<>> touched_;  // of a key and all above it
  std::int64_t revision_ = 0;
};

}  // namespace millrace::testing
