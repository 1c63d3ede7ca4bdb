// The one source of chance in a simulation.
#pragma once

#include <cstdint>
#include <random>

#include <millrace/environment.h>

namespace millrace::testing {

/// The same seed gives the same numbers on every machine.
class SimRandom final : public Random {
 public:
  explicit SimRandom(std::uint64_t seed) : engine_(seed) {}

  void fill(MutableBytes bytes) override {
    for (auto& byte : bytes) byte = static_cast<std::byte>(engine_());
  }
  /// 0..bound-1, for a bound above 0.
  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
  /// True once in `times`.
  bool one_in(std::uint64_t times) { return below(times) == 0; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace millrace::testing
