// Time and chance as the system gives them.
#pragma once

#include <millrace/environment.h>

namespace millrace::kernel {

class SystemClock final : public Clock {
 public:
  MonoTime now() const noexcept override { return std::chrono::steady_clock::now(); }
  Timestamp wall() const noexcept override;
};

/// getrandom(2): good enough for secrets.
class SystemRandom final : public Random {
 public:
  void fill(MutableBytes bytes) override;
};

}  // namespace millrace::kernel
