// Small blocks of memory that one thread has given back and takes again: what a request allocates
// and frees, its coroutines above all, costs a few instructions each. The program's operator new
// and delete are made of it (daemon/new_delete.cc), for itself and for its plugins.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace millrace::kernel {

/// [one thread]. Every block is one of malloc(), so that whoever does not know its size may free()
/// it. It may come from another thread's blocks, and go to another's.
class SmallBlocks {
 public:
  /// What is larger is not kept.
  static constexpr std::size_t bytes_max = 2040;
  /// Of one size; what is given back beyond that goes to free().
  static constexpr std::size_t kept_bytes_max = 16 << 10;

  constexpr SmallBlocks() noexcept = default;
  SmallBlocks(const SmallBlocks&) = delete;
  SmallBlocks& operator=(const SmallBlocks&) = delete;
  ~SmallBlocks() = default;

  /// What a block for `bytes` has room for: what malloc() has beside its own word.
  static constexpr std::size_t room_for(std::size_t bytes) noexcept {
    return class_of(bytes) * step_bytes + word_bytes;
  }

  /// A block of room_for(bytes) that was given back; nullptr when there is none. `bytes` is
  /// bytes_max at most, here and below.
  void* take(std::size_t bytes) noexcept {
    auto& kept = kept_[class_of(bytes)];
    auto* block = kept.first;
    if (!block) return nullptr;
    kept.first = block->next;
    ++kept.room;
    return block;
  }
  /// False when there is no room for it. The block has room_for(bytes).
  bool keep(void* memory, std::size_t bytes) noexcept {
    auto& kept = kept_[class_of(bytes)];
    if (kept.room == 0) return false;
    --kept.room;
    auto* block = static_cast<Block*>(memory);
    block->next = kept.first;
    kept.first = block;
    return true;
  }

  /// Keeps nothing before, and nothing after end().
  void begin() noexcept {
    for (std::size_t at = 0; at < kept_.size(); ++at) {
      kept_[at].room = static_cast<std::uint32_t>(kept_bytes_max / ((at + 1) * step_bytes));
    }
  }
  void end() noexcept {
    for (auto& kept : kept_) {
      while (kept.first) {
        auto* block = kept.first;
        kept.first = block->next;
        std::free(block);
      }
      kept.room = 0;
    }
  }

 private:
  static constexpr std::size_t step_bytes = 16;
  static constexpr std::size_t word_bytes = 8;

  struct Block {
    Block* next;
  };
  struct Kept {
    Block* first = nullptr;
    std::uint32_t room = 0;
  };

  static constexpr std::size_t class_of(std::size_t bytes) noexcept {
    return (bytes + step_bytes - word_bytes - 1) / step_bytes;
  }

  std::array<Kept, bytes_max / step_bytes + 1> kept_{};
};

}  // namespace millrace::kernel
