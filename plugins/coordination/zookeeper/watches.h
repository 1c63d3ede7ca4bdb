// One-shot watches turned into a state that can be compared: what next_change() waits on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/coordination.h>

#include "session.h"

namespace millrace::zookeeper {

/// What is at a prefix and below, as far as it matters for "has it changed". Every znode in it is
/// watched; where a watch has fired, the znode is read again, which arms the next one before the
/// answer is given: a change between the two is in what was read, a later one fires. Nothing is
/// read before somebody asks.  [control thread]
class WatchedTree {
 public:
  WatchedTree(std::shared_ptr<Session> session, std::shared_ptr<std::int64_t> revisions,
              std::string prefix);

  /// A watch of this path has fired; true when it is one of ours.
  bool touch(const std::string& path);
  bool is_stale() const noexcept { return !stale_.empty(); }
  /// Reads what is stale, until nothing is.
  Task<> refresh();
  /// Higher after each refresh() that found something else than there was.
  std::int64_t revision() const noexcept { return revision_; }
  /// Of all paths in it.
  std::size_t path_bytes() const noexcept { return path_bytes_; }
  const std::string& prefix() const noexcept { return prefix_; }

 private:
  struct Node {
    std::int64_t created = 0;
    std::int64_t changed = 0;
    std::int64_t children_changed = 0;
    friend bool operator==(const Node&, const Node&) = default;
  };
  Task<> read_some(std::vector<std::string> paths);
  bool take(const std::string& path, const Answer& node, const Answer& children);
  bool forget(std::string_view path);

  std::shared_ptr<Session> session_;
  std::shared_ptr<std::int64_t> revisions_;
  std::string prefix_;
  std::map<std::string, Node, std::less<>> nodes_;
  std::set<std::string, std::less<>> stale_;
  std::int64_t revision_ = 0;
  std::size_t path_bytes_ = 0;
  Mutex reading_;
};

/// All that is watched in one session.  [control thread]
class Watches final : public SessionListener {
 public:
  /// `revisions`: the last one that was given, in whichever session of this process.
  Watches(std::shared_ptr<Session> session, std::shared_ptr<std::int64_t> revisions);
  ~Watches() override;
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

  /// Coordination::next_change. Errc::too_large: what is below `prefix` is more than a connection
  /// can be told to watch. `self` keeps this alive.
  static Task<Seen> next_change(std::shared_ptr<Watches> self, std::string prefix, Seen seen);

  void on_watch(const std::string& path) override;
  void on_end() override;

 private:
  Task<> refresh(WatchedTree& tree);
  std::size_t path_bytes() const noexcept;

  std::shared_ptr<Session> session_;
  std::shared_ptr<std::int64_t> revisions_;
  std::map<std::string, std::unique_ptr<WatchedTree>, std::less<>> trees_;
  Event changed_;
};

}  // namespace millrace::zookeeper
