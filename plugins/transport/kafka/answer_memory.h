// What the answers of one shard's connections hold in memory while their peers do not read them.
#pragma once

#include <cstdint>
#include <functional>

namespace millrace::kafka_transport {

/// A sum with two marks. Beyond the first one memory is scarce: connections whose answers wait
/// begin no more requests, until the sum is down to half. Beyond twice as much it is exhausted:
/// nobody begins any. So the sum stays below that, but for one answer per connection.  [its shard]
class AnswerMemory {
 public:
  /// `changed` is called when memory becomes scarce (true) and when it is not any more.
  AnswerMemory(std::uint64_t bytes_max, std::function<void(bool scarce)> changed)
      : bytes_max_(bytes_max), changed_(std::move(changed)) {}
  AnswerMemory(const AnswerMemory&) = delete;
  AnswerMemory& operator=(const AnswerMemory&) = delete;

  /// One connection's part of the sum.
  class Share {
   public:
    explicit Share(AnswerMemory& of) : of_(of) {}
    ~Share() { set(0); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    void set(std::uint64_t bytes);
    std::uint64_t bytes() const noexcept { return bytes_; }
    /// Whether its connection may begin another request.
    bool has_room() const noexcept;

   private:
    AnswerMemory& of_;
    std::uint64_t bytes_ = 0;
  };

  std::uint64_t bytes() const noexcept { return bytes_; }
  std::uint64_t bytes_max() const noexcept { return bytes_max_; }
  bool scarce() const noexcept { return scarce_; }
  bool exhausted() const noexcept { return bytes_ >= 2 * bytes_max_; }

 private:
  /// Leaves something for others.
  std::uint64_t share_max() const noexcept { return bytes_max_ / 8; }

  const std::uint64_t bytes_max_;
  const std::function<void(bool)> changed_;
  std::uint64_t bytes_ = 0;
  bool scarce_ = false;
};

}  // namespace millrace::kafka_transport
