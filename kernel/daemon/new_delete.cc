// operator new and delete of the program and of the plugins in it: small blocks come from what
// their thread has given back. A build with a sanitizer keeps that one's, which sees more.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MILLRACE_SANITIZED
#endif
#endif

#ifndef MILLRACE_SANITIZED
#include <cstdlib>
#include <new>

#include "kernel/env/small_blocks.h"

namespace {

using millrace::kernel::SmallBlocks;

// In the program itself, so it is where the thread points to; else each use would be a call.
[[gnu::tls_model("initial-exec")]] constinit thread_local SmallBlocks blocks;

// Gives back what is kept when its thread ends. What is freed after that goes to free().
struct Life {
  Life() noexcept { blocks.begin(); }
  ~Life() { blocks.end(); }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;
};

[[gnu::noinline]] void* allocate(std::size_t bytes) {
  while (true) {
    if (void* memory = std::malloc(bytes)) return memory;
    const auto handler = std::get_new_handler();
    if (!handler) throw std::bad_alloc();
    handler();
  }
}

[[gnu::noinline]] void* allocate_small(std::size_t bytes) {
  return allocate(SmallBlocks::room_for(bytes));
}

[[gnu::noinline]] void give_back_first(void* memory, std::size_t bytes) noexcept {
  static thread_local Life life;
  static_cast<void>(life);
  if (!blocks.keep(memory, bytes)) std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (bytes > SmallBlocks::bytes_max) return allocate(bytes);
  if (void* memory = blocks.take(bytes)) return memory;
  return allocate_small(bytes);
}

void operator delete(void* memory, std::size_t bytes) noexcept {
  if (bytes > SmallBlocks::bytes_max || !memory) return std::free(memory);
  if (!blocks.keep(memory, bytes)) give_back_first(memory, bytes);
}

void operator delete(void* memory) noexcept { std::free(memory); }

#endif
