// One stream of this broker: its topics, its tasks, what becomes of it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <millrace/streams.h>

#include "kernel/streams/stream_parts.h"
#include "kernel/streams/stream_task.h"
#include "kernel/streams/stream_topology.h"

namespace millrace::kernel {

/// [the shard that it was made on]
class StreamRunner {
 public:
  /// `planned` and its place; it waits for start().
  StreamRunner(StreamParts& parts, PlannedStream planned);
  ~StreamRunner();
  StreamRunner(const StreamRunner&) = delete;
  StreamRunner& operator=(const StreamRunner&) = delete;

  const StreamSpec& spec() const noexcept { return planned_.spec; }
  const std::string& declared_in() const noexcept { return planned_.declared_in; }

  /// Begins to run; a stream that has failed begins anew.
  void start();
  /// Completes when every task has committed what it has begun.
  Task<> stop();
  /// The plugin of a step goes on as `library`, with the options that the step has.
  Task<> replace(std::size_t step_at, PluginLibrary library, std::string file);
  /// Ends everything. Nothing else is called afterwards.
  Task<> close();
  StreamFact fact() const;

 private:
  enum class State { stopped, waiting, running, failed };
  struct TaskSeat;

  Task<> loop();
  Task<> look();
  Task<bool> find_topics();
  Task<std::map<std::string, std::int32_t>> count_partitions(std::vector<std::string> topics,
                                                             bool create);
  Task<> ensure_changelog(std::int32_t partitions);
  Task<> keep_changelog(bool kept);
  Task<> make_run();
  void start_tasks();
  void stop_tasks();
  void start_task(std::int32_t partition, std::vector<std::string> sources);
  Task<> run_task(std::int32_t partition, std::vector<std::string> sources);
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
  Shard& shard_;
  std::unique_ptr<Session> session_;
  bool wanted_ = false;  // to run
  bool closing_ = false;
  State state_ = State::stopped;
  std::string reason_;
  std::map<std::string, std::int32_t> counted_;  // partitions of the sources
  bool recount_ = false;
  std::shared_ptr<const StreamRun> run_;
  std::map<std::int32_t, std::unique_ptr<TaskSeat>> tasks_;  // by partition number
  Event changed_;  // something is to be looked at, or a task has ended
  bool nudged_ = false;
  Gate running_;
};

}  // namespace millrace::kernel
