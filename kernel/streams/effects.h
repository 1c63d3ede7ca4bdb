// What aggregates ask for outside their own log: records and ends of transactions for other
// partitions, commands to other aggregates.
#pragma once

#include <memory>
#include <string>

#include <millrace/aggregates.h>

#include "kernel/broker/partitions.h"

namespace millrace::kernel {

/// How one attempt ended.
struct EffectResult {
  ErrorCode error = ErrorCode::none;
  std::string detail;
  std::unique_ptr<Message> answer;
  bool again = false;  ///< it failed, and another attempt may not
};

/// Makes one attempt. A failed Task means that the broker is stopping.  [any data shard]
class EffectCalls {
 public:
  /// `aggregates` takes commands.
  EffectCalls(PartitionMap& partitions, Clock& clock, Aggregates& aggregates)
      : partitions_(partitions), clock_(clock), aggregates_(aggregates) {}

  /// `effect` is kept by the caller until this ends.
  Task<EffectResult> attempt(const Effect& effect);

 private:
  Task<EffectResult> append(const AppendEffect& effect);
  Task<EffectResult> mark(const MarkerEffect& effect);
  Task<EffectResult> command(const CommandEffect& effect);

  PartitionMap& partitions_;
  Clock& clock_;
  Aggregates& aggregates_;
};

}  // namespace millrace::kernel
