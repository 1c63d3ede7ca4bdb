#include "kernel/partition/partition_watch.h"

#include <utility>

#include <millrace/result.h>

namespace millrace::kernel {

void PartitionWatch::stop() noexcept {
  if (!followed_) return;
  auto& watches = std::exchange(followed_, nullptr)->watches_;
  watches[at_] = watches.back();
  watches[at_]->at_ = at_;
  watches.pop_back();
}

PartitionWatches::~PartitionWatches() {
  while (!watches_.empty()) watches_.back()->stop();
}

void PartitionWatches::add(PartitionWatch& watch, Offset from, Horizon horizon) {
  MR_ASSERT(!watch.followed_);
  watch.followed_ = this;
  watch.at_ = watches_.size();
  watch.from_ = from;
  watch.horizon_ = horizon;
  watches_.push_back(&watch);
}

void PartitionWatches::release() {
  while (!watches_.empty()) {
    auto& watch = *watches_.back();
    watch.stop();
    watch.on_change(true);
  }
}

}  // namespace millrace::kernel
