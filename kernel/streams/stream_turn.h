// One turn of a task: a bounded piece of its input through the operators, on a worker, up to
// everything that is to be written of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/broker.h>
#include <millrace/codec.h>
#include <millrace/environment.h>

#include "kernel/streams/keyed_state_log.h"
#include "kernel/streams/operator_chain.h"
#include "kernel/streams/stream_outputs.h"

namespace millrace::kernel {

/// What a turn reads.
struct TurnInput {
  struct Source {
    std::string topic;
    Payload batches;  ///< from its position on
    std::vector<AbortedTransaction> aborted;
  };
  std::vector<Source> sources;
  Timestamp now;  ///< for the changelog
};

struct FailedRecord {
  TopicPartition source;
  Offset offset;
};

/// Why a stream ends.
struct StreamFailure {
  std::string step;       ///< empty: none is to blame
  TopicPartition source;  ///< and the record, when there is one
  Offset offset;
  Error error;
  bool of_timer = false;  ///< the record has only moved the time
};
std::string to_string(const StreamFailure& failure);

/// What is to be written: first the outputs, then the changelog. Then the turn is committed.
struct TurnResult {
  std::vector<StreamOutput> outputs;
  std::optional<Buffer> changelog;  ///< none: there is no progress
  SourcePositions positions;        ///< once it is written
  /// Ask how many partitions it has, and go on.
  std::optional<std::string> unknown_topic;
  std::optional<StreamFailure> failure;  ///< behind what is to be written
  std::vector<StepCounts> counts;
  std::vector<std::uint64_t> state_entries;  ///< by step
  std::uint64_t state_bytes = 0;
  std::uint64_t skipped = 0;  ///< records that failed and were passed over
  Duration pause{};           ///< before the next turn
};

enum class ErrorPolicy : std::uint8_t { stop, skip, dead_letter };

struct TurnSettings {
  std::string stream;
  /// Why the topic that an operator names may not be written to; none: it may.
  std::function<std::optional<std::string>(const std::string& topic)> check_output = {};
  std::int32_t partition = 0;
  ErrorPolicy on_error = ErrorPolicy::stop;
  std::string dead_letter;
  std::optional<FailedRecord> skip = {};  ///< no operator sees it
};

/// Everything a task's turns work on; shared with the worker that runs one, which may not come back
/// when its task is gone.  [one thread at a time]
class TurnState {
 public:
  TurnState(TurnSettings settings, std::vector<OperatorChain::Step> steps, std::string sink,
            std::shared_ptr<StreamMemory> memory, const Clock& clock, Codecs codecs);

  /// Those of before outlive it. Between two turns.
  void use(const Codecs& codecs) noexcept { codecs_ = codecs; }
  TurnResult run(const TurnInput& input);
  /// The turn ends at the next record.  [any thread]
  void hurry() noexcept { hurried_.store(true, std::memory_order_relaxed); }

  OperatorChain& chain() noexcept { return chain_; }
  StreamOutputs& outputs() noexcept { return outputs_; }
  const SourcePositions& positions() const noexcept { return positions_; }
  /// The next turn commits it, whatever it reads.
  void set_position(const std::string& topic, SourcePosition position);
  Buffer snapshot(Offset at) { return KeyedStateLog::snapshot(chain_, positions_, at); }
  Result<> restore(Buffer snapshot, Offset at) {
    return KeyedStateLog::restore(std::move(snapshot), at, chain_, positions_);
  }
  /// Batches of a changelog from `next` on, which moves behind them.
  Result<std::uint64_t> replay(const Payload& batches, Offset& next);

 private:
  bool run_source(const TurnInput::Source& input, TurnResult& result);
  bool run_batch(const TopicPartition& source, const BatchHeader& header, const Buffer& batch,
                 TurnResult& result);
  bool run_set(const TopicPartition& source, const Buffer& set, TurnResult& result);
  bool run_record(const TopicPartition& source, const RecordView& record, TurnResult& result);
  bool is_to_skip(const TopicPartition& source, Offset offset) const;
  bool settle(const TopicPartition& source, const RecordView& record, ChainFailure failure,
              TurnResult& result);
  bool write_dead_letter(const TopicPartition& source, const RecordView& record,
                         const ChainFailure& failure, TurnResult& result);
  bool is_enough();

  TurnSettings settings_;
  std::shared_ptr<StreamMemory> memory_;
  const Clock& clock_;
  Codecs codecs_;
  StreamOutputs outputs_;
  OperatorChain chain_;
  SourcePositions positions_;
  KeyedStateLog log_;
  std::atomic<bool> hurried_{false};
  // Of the turn that runs.
  MonoTime begun_;
  std::uint64_t records_ = 0;
  bool progress_ = false;  // positions that are not in the changelog yet
};

}  // namespace millrace::kernel
