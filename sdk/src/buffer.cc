#include <millrace/buffer.h>

#include <cstdlib>
#include <new>

namespace millrace {

detail::Block* detail::Block::make(std::size_t capacity) {
  void* memory = std::malloc(sizeof(Block) + capacity);
  if (!memory) throw std::bad_alloc();
  auto* block = new (memory) Block;
  block->capacity = capacity;
  return block;
}

detail::Block* detail::Block::grow(Block* block, std::size_t capacity) {
  MR_ASSERT(block->owners.load(std::memory_order_relaxed) == 1);
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
  this->~Block();
  std::free(this);
}

Buffer Buffer::copy_of(Bytes bytes) {
  if (bytes.empty()) return {};
  MutableBuffer copy(bytes.size());
  copy.append(bytes);
  return std::move(copy).freeze();
}

}  // namespace millrace
