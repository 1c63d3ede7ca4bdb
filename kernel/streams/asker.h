// Who waits for an aggregate's answer.
#pragma once

#include <memory>
#include <utility>

#include <millrace/aggregates.h>
#include <millrace/shard.h>

namespace millrace::kernel {

/// The waiting end is on its `home` shard, whoever holds this. Answered, or dropped (then the
/// waiter gets Errc::cancelled), on any shard.
class Asker {
 public:
  Asker() = default;
  Asker(Shard& home, Resolver<AggregateAnswer> resolver)
      : home_(&home), resolver_(std::move(resolver)) {}
  Asker(Asker&&) noexcept = default;
  Asker& operator=(Asker&& other) noexcept {
    std::swap(home_, other.home_);
    std::swap(resolver_, other.resolver_);
    return *this;
  }
  ~Asker() {
    if (!home_ || !resolver_ || home_->is_current()) return;
    home_->post([dropped = std::move(resolver_)] {});
  }

  explicit operator bool() const noexcept { return static_cast<bool>(resolver_); }
  /// `here` is the shard that answers.
  void answer(Shard& here, AggregateAnswer answer) {
    if (!resolver_) return;
    if (home_ == &here) return resolver_.resolve(std::move(answer));
    home_->post([resolver = std::move(resolver_), answer = std::move(answer)]() mutable {
      resolver.resolve(std::move(answer));
    });
  }
  void refuse(Shard& here, ErrorCode error, std::string detail) {
    answer(here, AggregateAnswer{error, std::move(detail), nullptr});
  }
  bool is_home(const Shard& here) const noexcept { return home_ == &here; }
  /// The waiter has given up, as far as that can be seen from `here`.
  bool is_abandoned(const Shard& here) const noexcept {
    return is_home(here) && resolver_.abandoned();
  }
  /// Runs `job` when the waiter gives up.  [home shard]
  void on_abandoned(Job job) { resolver_.on_abandoned(std::move(job)); }

 private:
  Shard* home_ = nullptr;
  Resolver<AggregateAnswer> resolver_;
};

}  // namespace millrace::kernel
