// Small, agreed-on state: sessions, a tree of versioned keys, notice of change. Level-triggered:
// who waits learns that the state differs from what it saw, not which steps led there. Keys are
// paths,
// "/brokers/ids/1". `standalone` and the simulated one pass testing/coordination_contract.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/shard.h>
#include <millrace/types.h>

namespace millrace {

/// Of a key: 0 when created, one more at each write. A write that changes whose lease a key goes
/// with, or that it goes with one, creates it anew. Where keys below it were there before it, a
/// backend may begin with a higher one.
using Version = std::int64_t;
inline constexpr Version any_version = -1;     ///< write whatever is there; create if missing
inline constexpr Version must_not_exist = -2;  ///< create

struct Versioned {
  std::string value;
  Version version = 0;
  bool ephemeral = false;
};

struct Write {
  std::string key;
  std::optional<std::string> value{};  ///< none: remove the key
  Version expected = any_version;
  bool ephemeral = false;  ///< goes with our lease; no key can be below it
};

/// What a write counts towards commit_bytes.
constexpr std::size_t commit_bytes_of(const Write& write) noexcept {
  return 256 + 2 * write.key.size() + (write.value ? write.value->size() : 0);
}
/// A commit of so many bytes in all is taken by every backend. One that is larger may be
/// Errc::too_large: a change that needs more is made in several, in an order that does no harm
/// when the later ones are missing.
inline constexpr std::size_t commit_bytes_max = std::size_t{640} * 1024;

struct Member {
  std::int32_t broker_id = -1;
};

/// Our session. While now < valid_until() nobody else may think us dead.  [control thread]
class Lease {
 public:
  virtual ~Lease() = default;
  virtual MonoTime valid_until() const noexcept = 0;
  /// Rises with each new session of any member; fences older ones.
  virtual std::int64_t epoch() const noexcept = 0;
  /// Completes when the session is gone for good.
  virtual Task<> lost() = 0;
};

/// A state of everything below a prefix. Compare with ==; opaque otherwise.
struct Seen {
  std::int64_t revision = -1;
  friend bool operator==(Seen, Seen) = default;
};

/// [control thread]
class Coordination {
 public:
  virtual ~Coordination() = default;
  virtual Task<std::unique_ptr<Lease>> join(Member self) = 0;
  /// Errc::not_found.
  virtual Task<Versioned> get(std::string key) = 0;
  /// Names (not paths) of the children of `prefix`, sorted; empty when there are none.
  virtual Task<std::vector<std::string>> list(std::string prefix) = 0;
  /// All or nothing, durable when it completes; parents are made as needed. Errc::conflict names
  /// the first key whose version is not the expected one; Errc::not_found removing what is not
  /// there; Errc::invalid_argument a key that cannot be; Errc::too_large beyond commit_bytes_max;
  /// Errc::fenced when the session is over, and then the last commit may have been done or not.
  /// Answers the new version of each key.
  virtual Task<std::vector<Version>> commit(std::vector<Write> writes) = 0;
  /// Completes once the state of `prefix` and below differs from `seen`; at once for Seen{}. Where
  /// nothing is at or below `prefix`, it may complete for a change elsewhere.
  virtual Task<Seen> next_change(std::string prefix, Seen seen) = 0;
};

}  // namespace millrace
