// One partition number of a stream: reads its input, runs the operators on workers, writes what
// comes out, commits.
//
//   restore: snapshot beside the changelog's log, then the changelog's records
//   turn:    fetch -> operators, on a worker -> outputs, acknowledged -> one append to the
//   changelog
//
// A crash between any two of them repeats outputs at most: state and position are those of the last
// append.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <millrace/streams.h>

#include "kernel/partition/partition.h"
#include "kernel/streams/operator_plugin.h"
#include "kernel/streams/stream_access.h"
#include "kernel/streams/stream_parts.h"
#include "kernel/streams/stream_turn.h"

namespace millrace::kernel {

/// Totals of one step over all tasks.  [any thread]
struct StepTotals {
  Counter& records_in;
  Counter& records_out;
  Counter& errors;
  Counter& nanoseconds;
};

/// What the tasks of a running stream share.  [any thread, once it runs]
struct StreamRun {
  StreamSpec spec;
  std::vector<std::shared_ptr<OperatorPlugin>> plugins;  ///< by step
  std::shared_ptr<StreamMemory> memory;
  std::vector<StepTotals> totals;
  Counter& skipped;
  Log log;
};

/// What a task tells of itself.  [any thread]
class TaskStatus {
 public:
  StreamTaskFact fact() const {
    const std::lock_guard lock(mutex_);
    return fact_;
  }
  std::vector<std::uint64_t> state_entries() const {
    const std::lock_guard lock(mutex_);
    return state_entries_;
  }
  template <class F>
  void change(F edit) {
    const std::lock_guard lock(mutex_);
    edit(fact_);
  }
  void set_state_entries(std::vector<std::uint64_t> entries) {
    const std::lock_guard lock(mutex_);
    state_entries_ = std::move(entries);
  }

 private:
  mutable std::mutex mutex_;
  StreamTaskFact fact_;
  std::vector<std::uint64_t> state_entries_;
};

/// A source as it is while a task runs.
struct StreamSource {
  std::string topic;
  Uuid id;
  friend bool operator==(const StreamSource&, const StreamSource&) = default;
};

/// What a task reads.
struct TaskInputs {
  std::int32_t partition = 0;  ///< of all sources
  std::vector<StreamSource> sources;
  std::optional<FailedRecord> skip;  ///< no operator sees it
};

/// How a task has ended.
struct TaskEnd {
  enum class Kind {
    stopped,  ///< as asked for
    failed,   ///< the stream cannot go on
    retry,    ///< something else is not as it should be: try again in a while
  };
  Kind kind = Kind::stopped;
  StreamFailure failure;
};

/// [the shard of its changelog's partition]
class StreamTask {
 public:
  StreamTask(StreamParts& parts, std::shared_ptr<const StreamRun> run,
             std::shared_ptr<TaskStatus> status, TaskInputs inputs);
  ~StreamTask();
  StreamTask(const StreamTask&) = delete;
  StreamTask& operator=(const StreamTask&) = delete;

  /// Once. Until it is asked to stop or cannot go on.
  Task<TaskEnd> run();
  /// The turn that runs is ended soon and committed.
  void stop() noexcept;
  /// Between two turns. The plugin of what was there is let go of when this completes.
  Pending<> replace(std::size_t step_at, std::shared_ptr<OperatorPlugin> plugin);

 private:
  struct Replacement {
    std::size_t step_at;
    std::shared_ptr<OperatorPlugin> plugin;
    Resolver<> done;
  };

  // stream_task.cc
  Task<> run_turns();
  Task<> turn();
  Task<> process(TurnInput input);
  Task<std::optional<TurnInput>> read();
  Task<bool> take(PartitionFetched& fetched, const StreamSource& source, TurnInput& input);
  Task<> reset_position(const StreamSource& source);
  /// Another broker leads the changelog by now, and has a task of its own.
  bool is_led() const noexcept { return changelog_->leading(); }
  Result<> check_led() const;
  Task<> apply_replacements();
  Task<> keep_snapshot();
  Task<> release_state();
  void given_up();
  void tell(const TurnResult& result);
  void tell_positions(const SourcePositions& positions);
  void tell_state(std::string_view state, std::string_view reason = {});
  bool interrupted() const noexcept { return stopping_ || !replacements_.empty(); }
  /// Errc::cancelled when stop() or replace() has ended the wait: see interrupted().
  template <class T>
  Task<T> interruptible(Task<T> wait);

  // stream_task_restore.cc
  Task<> prepare();
  Task<> make_state();
  Task<> restore();
  Task<Offset> restore_snapshot();
  Task<> find_beginnings();
  Task<bool> find_beginning(const StreamSource& source);
  Task<> find_ends();
  Task<Offset> find_offset(std::string topic, OffsetSpec spec);

  // stream_task_write.cc
  Task<> write(std::vector<StreamOutput> outputs);
  Task<> write_all(std::vector<std::pair<TopicPartition, Buffer>> batches);
  Task<> commit(Buffer changelog);
  Task<> make_again(std::string topic);
  Task<> learn(std::string topic);
  Task<> learn_again();

  StreamParts& parts_;
  std::shared_ptr<const StreamRun> run_;
  std::shared_ptr<TaskStatus> status_;
  std::int32_t partition_;
  std::vector<StreamSource> sources_;
  std::optional<FailedRecord> skip_;
  Log log_;
  Shard& shard_;
  std::unique_ptr<StreamAccess> access_;
  std::shared_ptr<Partition> changelog_;
  std::shared_ptr<TurnState> state_;      // while a turn runs it is the worker's
  Duration limit_;                        // of a turn; shorter once it is asked to stop
  std::unique_ptr<CancelScope> waiting_;  // of a wait that stop() and replace() end
  bool stopping_ = false;
  std::vector<Replacement> replacements_;
  std::optional<StreamFailure> failure_;             // why the stream ends
  std::map<std::string, Offset, std::less<>> ends_;  // last stable offsets, as last read
  MonoTime learned_at_;
  Offset committed_;                  // the changelog's next offset
  std::uint64_t since_snapshot_ = 0;  // bytes of changelog
};

}  // namespace millrace::kernel
