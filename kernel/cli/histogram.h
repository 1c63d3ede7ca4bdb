// Times in microseconds, kept in buckets of which 128 cover each power of two: a quantile is off by
// less than 1 %.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace millrace::kernel::cli {

class Histogram {
 public:
  /// So many of that time.
  void add(std::int64_t microseconds, std::uint64_t times = 1) {
    const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(microseconds, 0));
    counts_[bucket_of(value)] += times;
    total_ += times;
    max_ = std::max(max_, value);
  }

  void add(const Histogram& other) {
    for (std::size_t at = 0; at < counts_.size(); ++at) counts_[at] += other.counts_[at];
    total_ += other.total_;
    max_ = std::max(max_, other.max_);
  }

  std::uint64_t total() const { return total_; }
  std::uint64_t max() const { return max_; }
  /// The smallest value that at least `share` (0 to 1) of all are not above.
  std::uint64_t quantile(double share) const {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(total_));
    std::uint64_t seen = 0;
    for (std::size_t at = 0; at < counts_.size(); ++at) {
      seen += counts_[at];
      if (seen > wanted) return start_of(at);
    }
    return max_;
  }

 private:
  static constexpr int log2_width = 7;
  static constexpr std::size_t width = 1U << log2_width;

  static std::size_t bucket_of(std::uint64_t value) {
    if (value < width) return value;
    const auto octave = static_cast<std::size_t>(std::bit_width(value)) - log2_width - 1;
    const auto at = (octave + 1) * width + (value >> octave) - width;
    return std::min(at, buckets - 1);
  }
  static std::uint64_t start_of(std::size_t bucket) {
    if (bucket < width) return bucket;
    return (bucket % width + width) << (bucket / width - 1);
  }

  static constexpr std::size_t buckets = 40 * width;
  std::array<std::uint64_t, buckets> counts_{};
  std::uint64_t total_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace millrace::kernel::cli
