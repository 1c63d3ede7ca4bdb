// State by key of one step of a stream, in memory, and its timers: what changed since the last
// commit is known, and a record that fails takes back what it has changed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/operator.h>

#include "kernel/streams/key_table.h"

namespace millrace::kernel {

/// What a stream may keep in memory through the SDK, all its tasks together.  [any thread]
class StreamMemory {
 public:
  explicit StreamMemory(std::int64_t bytes_max) : bytes_max_(bytes_max) {}

  /// False, and nothing is taken, when that would be too much.
  bool take(std::int64_t bytes) noexcept {
    if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= bytes_max_) return true;
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  void give_back(std::int64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::int64_t bytes_used() const noexcept { return used_.load(std::memory_order_relaxed); }
  std::int64_t bytes_max() const noexcept { return bytes_max_; }

 private:
  std::int64_t bytes_max_;
  std::atomic<std::int64_t> used_{0};
};

/// Thrown through an operator that asks for more: it ends loops that would not end.
class StreamMemoryExceeded final : public std::length_error {
 public:
  using std::length_error::length_error;
};

/// [one thread at a time]
class KeyedStore final : public KeyedState {
 public:
  /// `memory` outlives it.
  explicit KeyedStore(StreamMemory& memory) : memory_(memory) {}
  ~KeyedStore() override;
  KeyedStore(const KeyedStore&) = delete;
  KeyedStore& operator=(const KeyedStore&) = delete;

  std::optional<Bytes> get(Bytes key) const override;
  void put(Bytes key, Bytes value) override;
  void erase(Bytes key) override;
  void for_each(const std::function<bool(Bytes key, Bytes value)>& each) const override;
  std::size_t size() const noexcept override { return size_; }
  std::uint64_t bytes() const noexcept { return static_cast<std::uint64_t>(bytes_); }
  /// Something did not fit, whatever became of the exception.
  bool refused() const noexcept { return refused_; }

  /// The record that is being processed has succeeded: its changes stay.
  void keep();
  /// It has failed: they are taken back.
  void undo();
  /// Keys that the record has changed, with the value before; until keep() or undo().
  template <class F>
  void for_each_undoable(F each) const {
    for (const auto& saved : undo_) each(saved.node->key, saved.before, saved.node->value);
  }

  /// Calls each(key, value) for what has changed since the last call; no value: erased.
  template <class F>
  void take_changes(F each) {
    for (auto* node : changed_) {
      node->changed = false;
      each(as_bytes(node->key), value_of(*node));
      if (!node->value) nodes_.erase(*node);
    }
    changed_.clear();
  }
  std::size_t changes() const noexcept { return changed_.size(); }

  /// As put() and erase(), for what is read back: it does not count as changed. Before any other
  /// change.
  void restore(Bytes key, std::optional<Bytes> value);

 private:
  struct Node {
    explicit Node(std::string_view of) : key(of) {}

    const std::string key;
    std::optional<std::string> value;  // none: erased, and not committed yet
    bool changed = false;              // since the last commit
    bool saved = false;                // stands in undo_
  };
  struct Saved {
    Node* node;
    std::optional<std::string> before;
    bool changed;
  };

  static std::optional<Bytes> value_of(const Node& node) {
    if (!node.value) return std::nullopt;
    return as_bytes(*node.value);
  }
  void charge(std::int64_t bytes);
  void refund(std::int64_t bytes) noexcept;
  void save(Node& node);

  StreamMemory& memory_;
  KeyTable<Node> nodes_;
  std::vector<Node*> changed_;
  std::vector<Saved> undo_;
  std::size_t size_ = 0;
  std::int64_t bytes_ = 0;
  bool refused_ = false;
};

/// Times by name; kept, undone and committed as state is.  [one thread at a time]
class StepTimers {
 public:
  explicit StepTimers(StreamMemory& memory) : times_(memory) {}

  void set(Bytes name, Timestamp at);
  void cancel(Bytes name) { times_.erase(name); }
  using Due = std::pair<std::int64_t, std::string>;  ///< milliseconds, and a name
  /// What is due at `stream_time`, in the order of time.
  std::vector<Due> due(Timestamp stream_time) const;
  /// Unsets a timer that is still set for `time`; false when it is not.
  bool take(std::string_view name, std::int64_t time);

  void keep();
  void undo() { times_.undo(); }
  /// The names and times, in order, as they stand in the changelog.
  KeyedStore& times() noexcept { return times_; }
  const KeyedStore& times() const noexcept { return times_; }
  void restore(Bytes name, std::optional<Bytes> time);

 private:
  KeyedStore times_;
  std::set<Due> by_time_;  // as of the last keep()
};

}  // namespace millrace::kernel
