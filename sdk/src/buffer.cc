#include <millrace/buffer.h>

#include <new>

namespace millrace {

detail::Block* detail::Block::make(std::size_t capacity) {
  void* memory = ::operator new(sizeof(Block) + capacity);
  auto* block = new (memory) Block;
  block->capacity = capacity;
  return block;
}

void detail::Block::destroy() noexcept {
  this->~Block();
  ::operator delete(this);
}

Buffer Buffer::copy_of(Bytes bytes) {
  if (bytes.empty()) return {};
  MutableBuffer copy(bytes.size());
  copy.append(bytes);
  return std::move(copy).freeze();
}

}  // namespace millrace
