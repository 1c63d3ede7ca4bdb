#include <millrace/buffer.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace millrace {

namespace {

/// Larger blocks are malloc's, which may grow where they are.
constexpr std::size_t small_bytes_max = 1024;

}  // namespace

detail::Block* detail::Block::make(std::size_t capacity) {
  const auto bytes = sizeof(Block) + capacity;
  void* memory = bytes <= small_bytes_max ? ::operator new(bytes) : std::malloc(bytes);
  if (!memory) throw std::bad_alloc();
  auto* block = new (memory) Block;
  block->capacity = capacity;
  return block;
}

detail::Block* detail::Block::grow(Block* block, std::size_t capacity) {
  MR_ASSERT(block->owners.load(std::memory_order_relaxed) == 1);
  MR_ASSERT(capacity >= block->capacity);
  if (sizeof(Block) + block->capacity <= small_bytes_max) {
    auto* larger = make(capacity);
    std::memcpy(larger->data(), block->data(), block->capacity);
    block->destroy();
    return larger;
  }
  block->~Block();
  void* memory = std::realloc(block, sizeof(Block) + capacity);
  if (!memory) {
    new (block) Block;
    throw std::bad_alloc();
  }
  block = new (memory) Block;
  block->capacity = capacity;
  return block;
}

void detail::Block::destroy() noexcept {
  const auto bytes = sizeof(Block) + capacity;
  this->~Block();
  bytes <= small_bytes_max ? ::operator delete(this, bytes) : std::free(this);
}

Buffer Buffer::copy_of(Bytes bytes) {
  if (bytes.empty()) return {};
  MutableBuffer copy(bytes.size());
  copy.append(bytes);
  return std::move(copy).freeze();
}

}  // namespace millrace
