// A value that copies share until one of them changes it.
#pragma once

#include <memory>
#include <utility>

namespace millrace::consumer_groups {

/// [one thread]
template <class T>
class Shared {
 public:
  Shared() : value_(std::make_shared<T>()) {}
  explicit Shared(T value) : value_(std::make_shared<T>(std::move(value))) {}

  const T& operator*() const noexcept { return *value_; }
  const T* operator->() const noexcept { return value_.get(); }
  /// For a change: nobody else sees it.
  T& own() {
    if (value_.use_count() != 1) value_ = std::make_shared<T>(*value_);
    return *value_;
  }

 private:
  std::shared_ptr<T> value_;
};

}  // namespace millrace::consumer_groups
