// The operators of one task, one behind the other, with their state. A record goes through all of
// them or counts for nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/environment.h>
#include <millrace/operator.h>

#include "kernel/streams/keyed_state.h"
#include "kernel/streams/stream_outputs.h"

namespace millrace::kernel {

class OperatorPlugin;

/// An operator and what keeps its code and its maker alive.
struct MadeOperator {
  std::shared_ptr<OperatorPlugin> plugin;
  std::unique_ptr<Operator> object;
};

/// Why a record, or a timer, did not go through.
struct ChainFailure {
  enum class Kind {
    record,         ///< the stream's error policy decides
    memory,         ///< the stream ends
    unknown_topic,  ///< ask for its partitions and try again
  };
  Kind kind = Kind::record;
  std::size_t step_at = 0;
  Error error;
  std::string topic;  ///< of unknown_topic
};

/// What the calls of one step have come to since they were taken.
struct StepCounts {
  std::uint64_t records_in = 0;
  std::uint64_t records_out = 0;
  std::uint64_t errors = 0;
  std::uint64_t nanoseconds = 0;
};

/// [a worker; one thread at a time]
class OperatorChain {
 public:
  struct Step {
    std::string name;
    MadeOperator made;
  };
  /// `memory`, `clock` and `outputs` outlive it. `sink` empty: what comes out at the end goes
  /// nowhere.
  OperatorChain(std::vector<Step> steps, std::string sink, StreamMemory& memory, const Clock& clock,
                StreamOutputs& outputs);
  ~OperatorChain();

  /// Moves the stream's time; what is due by then is to be fired before the next record.
  void advance(Timestamp time) noexcept;
  Timestamp stream_time() const noexcept { return stream_time_; }
  void restore_stream_time(Timestamp time) noexcept { stream_time_ = time; }

  /// Calls the timers that are due now. One that fails stops it; `drop_failed` removes that timer,
  /// as if it had been called.
  std::optional<ChainFailure> fire_timers(const TopicPartition& source, bool drop_failed);
  std::optional<ChainFailure> process(const TopicPartition& source, const RecordView& record);
  /// A record that takes no part in the steps: dead letters.
  std::optional<ChainFailure> emit_past(const TopicPartition& source, const OutputRecord& record);

  std::size_t size() const noexcept { return steps_.size(); }
  const std::string& name_of(std::size_t step_at) const noexcept;
  KeyedStore& state_of(std::size_t step_at) noexcept;
  StepTimers& timers_of(std::size_t step_at) noexcept;
  std::optional<std::size_t> find(std::string_view step) const noexcept;
  std::uint64_t state_bytes() const noexcept;
  std::size_t changes() const noexcept;
  std::vector<StepCounts> take_counts();
  /// A record that a step has failed on in another way.
  void count_error(std::size_t step_at) noexcept;
  /// How much later the next record is wanted, as asked for since this was called.
  Duration take_pause() noexcept { return std::exchange(pause_, Duration{}); }
  Duration pause() const noexcept { return pause_; }

  /// The step that is being called, and the record.  [any thread]
  std::size_t running_step() const noexcept {
    return running_step_.load(std::memory_order_relaxed);
  }
  Offset running_record() const noexcept {
    return {running_record_.load(std::memory_order_relaxed)};
  }

  /// State and timers stay; answers what was there before.
  MadeOperator replace(std::size_t step_at, MadeOperator made);

 private:
  class StepEmitter;
  struct Slot;

  void call(std::size_t step_at, const RecordView& record);
  void call_timer(std::size_t step_at, const std::string& name);
  template <class F>
  void guarded(std::size_t step_at, F body) noexcept;
  void fail(ChainFailure failure) noexcept;
  void fail_memory(std::size_t step_at);
  void emit(std::size_t step_at, const OutputRecord& emitted);
  void write(std::size_t step_at, std::string_view topic, const OutputRecord& record);
  std::optional<ChainFailure> finish();

  std::vector<std::unique_ptr<Slot>> steps_;
  std::string sink_;
  StreamMemory& memory_;
  const Clock& clock_;
  StreamOutputs& outputs_;
  Timestamp stream_time_;
  std::uint64_t records_ = 0;
  Duration pause_{};
  std::atomic<std::size_t> running_step_{0};
  std::atomic<std::int64_t> running_record_{-1};

  // Of the record, or timer, that is being processed.
  const TopicPartition* source_ = nullptr;
  Offset record_offset_;
  Timestamp record_time_;
  std::optional<ChainFailure> failure_;
  bool sampled_ = false;
  Duration inner_{};  // what the steps below the one that runs have taken
};

}  // namespace millrace::kernel
