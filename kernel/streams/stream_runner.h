// One stream of this broker: its topics, its tasks, what becomes of it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <millrace/streams.h>

#include "kernel/streams/stream_changelog.h"
#include "kernel/streams/stream_parts.h"
#include "kernel/streams/stream_task.h"
#include "kernel/streams/stream_topology.h"

namespace millrace::kernel {

/// [the shard that it was made on]
class StreamRunner {
 public:
  /// `planned` and its place; it waits for start(). Without steps: see refuse().
  StreamRunner(StreamParts& parts, PlannedStream planned);
  ~StreamRunner();
  StreamRunner(const StreamRunner&) = delete;
  StreamRunner& operator=(const StreamRunner&) = delete;

  const StreamSpec& spec() const noexcept { return planned_.spec; }
  const std::string& declared_in() const noexcept { return planned_.declared_in; }

  /// Whether its operators were found. What is not planned is shown, and ends; it does not run.
  bool is_planned() const noexcept { return planned_.steps.size() == spec().steps.size(); }
  bool is_stopped() const noexcept { return state_ == State::stopped; }
  /// It has failed before it began.
  void refuse(std::string reason);

  /// Begins to run; a stream that has failed begins anew.
  void start();
  /// The next start() goes on behind the record that the stream has failed on. Errc::conflict: it
  /// has not failed on one.
  Result<> skip_failed();
  /// Completes when every task has committed what it has begun.
  Task<> stop();
  /// The plugin of a step goes on as `library`, with the options that the step has.
  Task<> replace(std::size_t step_at, PluginLibrary library, std::string file);
  /// State and positions go. It is stopped.
  Task<> remove_state();
  /// Ends everything. Nothing else is called afterwards.
  Task<> close();
  StreamFact fact() const;

 private:
  enum class State { stopped, waiting, running, failed };
  struct TaskSeat;
  struct Topic {
    Uuid id;
    std::int32_t partitions = 0;
    friend bool operator==(const Topic&, const Topic&) = default;
  };
  using Topics = std::map<std::string, Topic>;

  void open_session();
  Task<> loop();
  Task<> look();
  Task<bool> find_topics();
  Task<Topics> find(std::vector<std::string> topics, bool create);
  Task<bool> make_topics(const Topics& sources);
  static std::int32_t most_partitions(const Topics& topics);
  Task<> make_run();
  void start_tasks();
  /// Whether the task of this number runs on this broker: where its changelog is led.
  bool leads(std::int32_t partition) const;
  void stop_tasks();
  void stop_task(TaskSeat& seat);
  void start_task(std::int32_t partition, std::vector<StreamSource> sources);
  Task<> run_task(std::int32_t partition);
  void ended(std::int32_t partition, const TaskEnd& end);
  Task<> release_run();
  void wait_for(std::string reason);
  void fail(std::string reason);
  void tell_metrics();
  bool any_running() const;
  std::string_view state_name() const;

  StreamParts& parts_;
  PlannedStream planned_;
  Log log_;
  StreamChangelog changelog_;
  Shard& shard_;
  std::unique_ptr<Session> session_;
  bool wanted_ = false;  // to run
  bool looping_ = false;
  bool closing_ = false;
  State state_ = State::stopped;
  std::string reason_;
  std::optional<StreamFailure> failure_;  // of the state failed, when a task has ended with it
  std::optional<FailedRecord> skip_;      // as was asked for at the last start
  Topics sources_;
  bool recount_ = false;
  std::shared_ptr<const StreamRun> run_;
  std::map<std::int32_t, std::unique_ptr<TaskSeat>> tasks_;  // by partition number
  Event changed_;  // something is to be looked at, or a task has ended
  bool nudged_ = false;
  Gate running_;
};

}  // namespace millrace::kernel
