// Nodes by key, in memory: made for millions of them that are read back at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::kernel {

/// Owns its nodes, which stay where they are. A table of hashes stands before them: neither looking
/// for a key that is not there nor growing touches a node. `Node` has a member `key` that does not
/// change, and is made from a std::string_view.  [one thread at a time]
template <class Node>
class KeyTable {
 public:
  std::size_t size() const noexcept { return size_; }

  Node* find(std::string_view key) const noexcept {
    if (size_ == 0) return nullptr;
    const auto hash = hash_of(key);
    for (auto at = home_of(hash); slots_[at].node; at = next(at)) {
      if (slots_[at].hash == hash && slots_[at].node->key == key) return slots_[at].node.get();
    }
    return nullptr;
  }

  /// `key` is not there.
  Node& add(std::string_view key) {
    auto node = std::make_unique<Node>(key);
    if ((size_ + 1) * 4 > slots_.size() * 3) grow();
    auto& added = *node;
    put({hash_of(key), std::move(node)});
    ++size_;
    return added;
  }

  /// Of this table.
  void erase(const Node& node) noexcept {
    auto hole = home_of(hash_of(node.key));
    while (slots_[hole].node.get() != &node) hole = next(hole);
    slots_[hole].node.reset();
    --size_;
    // Those behind it that could stand in the hole move up, so that no search ends there.
    for (auto at = next(hole); slots_[at].node; at = next(at)) {
      const auto distance = (at - home_of(slots_[at].hash)) & mask();
      if (distance < ((at - hole) & mask())) continue;
      slots_[hole] = std::move(slots_[at]);
      hole = at;
    }
  }

  /// Until `each` answers false. It must not add or erase.
  template <class F>
  void for_each(F each) const {
    for (const auto& slot : slots_) {
      if (slot.node && !each(std::as_const(*slot.node))) return;
    }
  }

 private:
  struct Slot {
    std::size_t hash = 0;
    std::unique_ptr<Node> node;
  };
  static constexpr std::size_t slots_min = 16;

  static std::size_t hash_of(std::string_view key) noexcept {
    return std::hash<std::string_view>{}(key);
  }
  std::size_t mask() const noexcept { return slots_.size() - 1; }
  std::size_t home_of(std::size_t hash) const noexcept { return hash & mask(); }
  std::size_t next(std::size_t at) const noexcept { return (at + 1) & mask(); }

  void put(Slot slot) noexcept {
    auto at = home_of(slot.hash);
    while (slots_[at].node) at = next(at);
    slots_[at] = std::move(slot);
  }
  void grow() {
    std::vector<Slot> before(slots_.empty() ? slots_min : 2 * slots_.size());
    before.swap(slots_);
    for (auto& slot : before) {
      if (slot.node) put(std::move(slot));
    }
  }

  std::vector<Slot> slots_;  // a power of two, a quarter of them empty
  std::size_t size_ = 0;
};

}  // namespace millrace::kernel
