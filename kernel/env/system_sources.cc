#include "kernel/env/system_sources.h"

#include <sys/random.h>

#include <cerrno>

namespace millrace::kernel {

Timestamp SystemClock::wall() const noexcept {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count()};
}

void SystemRandom::fill(MutableBytes bytes) {
  while (!bytes.empty()) {
    const auto filled = ::getrandom(bytes.data(), bytes.size(), 0);
    // Any other failure means that there is no such call: every Linux since 3.17 has it.
    MR_ASSERT(filled > 0 || errno == EINTR);
    if (filled > 0) bytes = bytes.subspan(static_cast<std::size_t>(filled));
  }
}

}  // namespace millrace::kernel
