// What happened in a simulation, line by line: two runs of one seed must agree in all of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::testing {

class SimTrace {
 public:
  void add(std::string line);

  /// Of every line so far.
  std::uint64_t hash() const noexcept { return hash_; }
  std::uint64_t events() const noexcept { return events_; }
  /// From the first on, up to a bound: to see where two runs part.
  const std::vector<std::string>& lines() const noexcept { return lines_; }

 private:
  std::uint64_t hash_ = 14695981039346656037U;
  std::uint64_t events_ = 0;
  std::vector<std::string> lines_;
};

/// "line 17: '…' here, '…' there"; "" when the two agree.
std::string first_difference(const SimTrace& here, const SimTrace& there);

}  // namespace millrace::testing
