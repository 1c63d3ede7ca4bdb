// The records of one decision, and the group as it will be once they are in the log. What is
// decided next looks at that group, the log gets all of it or nothing.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <millrace/aggregate.h>

#include "consumer_group.h"

namespace millrace::consumer_groups {

/// [one decision]
class Draft {
 public:
  explicit Draft(const ConsumerGroup& group) : base_(group) {}

  const ConsumerGroup& group() const noexcept { return changed_ ? *changed_ : base_; }
  bool empty() const noexcept { return records_.empty(); }

  void add(Result<GroupRecord> record) {
    if (failure_) return;
    if (!record) return fail(std::move(record).error());
    if (!changed_) changed_.emplace(base_);
    if (auto applied = changed_->apply(*record); !applied) return fail(std::move(applied).error());
    records_.push_back(std::move(*record));
  }
  /// A record of the group's that this decision does not look at again, or of another protocol.
  void add_unseen(Result<GroupRecord> record) {
    if (failure_) return;
    if (!record) return fail(std::move(record).error());
    records_.push_back(std::move(*record));
  }

  /// To the log. Errc::invalid_argument: a string of the request has no room in a record, and
  /// nothing was emitted.
  Result<> emit(Context& context) const {
    if (failure_) return *failure_;
    for (const auto& [key, value] : records_) {
      context.emit(key, value ? std::optional<Bytes>(value->bytes()) : std::nullopt);
    }
    return {};
  }

 private:
  void fail(Error error) { failure_ = std::move(error); }

  const ConsumerGroup& base_;
  std::optional<ConsumerGroup> changed_;
  std::vector<GroupRecord> records_;
  std::optional<Error> failure_;
};

}  // namespace millrace::consumer_groups
