// A byte has one writer, then only readers: MutableBuffer (unique) -> freeze() -> Buffer (shared,
// const) -> slice(). Blocks are reference counted and may be released on any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include <millrace/result.h>

namespace millrace {

/// A view of bytes. Owns nothing: it stays between two suspensions, beside its owner.
using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

inline Bytes as_bytes(std::string_view text) noexcept {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view as_text(Bytes bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

namespace detail {

/// One allocation: this head, then the bytes. The count is of owners on any thread.
struct Block {
  std::atomic<std::uint32_t> owners{1};
  std::size_t capacity = 0;

  std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  static Block* make(std::size_t capacity);
  /// The same bytes in a larger block. `block` has one owner, and is gone. A large one is moved by
  /// the system, page by page, so that it is never in memory twice.
  static Block* grow(Block* block, std::size_t capacity);
  void retain() noexcept { owners.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (owners.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }

 private:
  void destroy() noexcept;
};

}  // namespace detail

/// Shared, immutable bytes: a slice of a block that lives as long as any slice of it. Copying is
/// one atomic increment. A small slice pins its whole block: state that outlives a request keeps
/// `slice.detach()` instead.  [any thread]
class Buffer {
 public:
  Buffer() noexcept = default;
  Buffer(const Buffer& other) noexcept
      : block_(other.block_), data_(other.data_), size_(other.size_) {
    if (block_) block_->retain();
  }
  Buffer(Buffer&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() {
    if (block_) block_->release();
  }

  /// A new block with a copy of `bytes`. Named, because copies are counted.
  static Buffer copy_of(Bytes bytes);
  static Buffer copy_of(std::string_view text) { return copy_of(as_bytes(text)); }

  const std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  Bytes bytes() const noexcept { return {data_, size_}; }
  operator Bytes() const noexcept { return bytes(); }
  std::string_view text() const noexcept { return as_text(bytes()); }

  /// Shares the block. `at + size` must lie within this buffer.
  Buffer slice(std::size_t at, std::size_t size) const {
    MR_ASSERT(at <= size_ && size <= size_ - at);
    Buffer part(*this);
    part.data_ += at;
    part.size_ = size;
    return part;
  }
  Buffer slice(std::size_t at) const { return slice(at, size_ - at); }

  /// The slice of this buffer that `view` (which must lie within it) shows.
  Buffer slice_of(Bytes view) const {
    return slice(static_cast<std::size_t>(view.data() - data_), view.size());
  }

  /// A copy in a block of its own, so that a small piece does not pin a large block.
  Buffer detach() const { return copy_of(bytes()); }

 private:
  friend class MutableBuffer;
  Buffer(detail::Block* block, const std::byte* data, std::size_t size) noexcept
      : block_(block), data_(data), size_(size) {}

  detail::Block* block_ = nullptr;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Bytes with one writer: a block of fixed capacity, filled from the front. What is filled can be
/// handed out as a Buffer while the rest is still being written: the two never overlap.
class MutableBuffer {
 public:
  MutableBuffer() noexcept = default;
  /// Not initialised.
  explicit MutableBuffer(std::size_t capacity)
      : block_(detail::Block::make(capacity)), capacity_(capacity) {}
  MutableBuffer(MutableBuffer&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  MutableBuffer& operator=(MutableBuffer&& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~MutableBuffer() {
    if (block_) block_->release();
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return capacity_; }
  std::byte* data() noexcept { return block_ ? block_->data() : nullptr; }
  Bytes bytes() const noexcept { return {block_ ? block_->data() : nullptr, size_}; }

  /// The part that is not filled yet; `filled(n)` after writing n bytes into its front.
  MutableBytes space() noexcept { return {data() + size_, capacity_ - size_}; }
  void filled(std::size_t bytes) {
    MR_ASSERT(bytes <= capacity_ - size_);
    size_ += bytes;
  }
  /// Copies to the end; there must be room.
  void append(Bytes bytes) {
    MR_ASSERT(bytes.size() <= capacity_ - size_);
    if (!bytes.empty()) std::memcpy(data() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }

  /// Makes the capacity at least so large. What is filled stays, at another address. Nothing of it
  /// may have been shared.
  void grow(std::size_t capacity) {
    if (capacity <= capacity_) return;
    block_ = block_ ? detail::Block::grow(block_, capacity) : detail::Block::make(capacity);
    capacity_ = capacity;
  }

  /// Takes back what was filled behind the first `size` bytes, of which nothing was shared.
  void cut(std::size_t size) {
    MR_ASSERT(size <= size_);
    size_ = size;
  }

  /// A shared view of bytes already filled. They must not be written again: the writer goes on
  /// behind them.
  Buffer share(std::size_t at, std::size_t size) const {
    MR_ASSERT(at <= size_ && size <= size_ - at);
    if (!block_) return {};
    block_->retain();
    return {block_, block_->data() + at, size};
  }

  /// Gives the filled bytes away; this becomes empty.
  Buffer freeze() && noexcept {
    const auto size = std::exchange(size_, 0);
    capacity_ = 0;
    auto* block = std::exchange(block_, nullptr);
    if (!block) return {};
    return {block, block->data(), size};
  }

 private:
  detail::Block* block_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace millrace
