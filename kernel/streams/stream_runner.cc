#include "kernel/streams/stream_runner.h"

#include <algorithm>
#include <utility>

#include <millrace/admin.h>

#include "kernel/config/text.h"
#include "kernel/streams/watchdog.h"

namespace millrace::kernel {

namespace {

constexpr Duration look_interval = std::chrono::seconds(1);
constexpr Duration retry_after = std::chrono::seconds(1);
// To start plugins and make operators, beside what the stream allows for a record.
const Duration setup_limit = std::chrono::seconds(30);
// A batch of changes is as large as the state that a turn changes.
constexpr const char* changelog_batch_bytes_max = "1073741824";

MetricLabels labels_of(const std::string& stream) { return {{"stream", stream}}; }

StepTotals totals_of(Metrics& metrics, const std::string& stream, const std::string& step) {
  const MetricLabels labels{{"step", step}, {"stream", stream}};
  return {metrics.counter("millrace_stream_step_records_in_total", "Records that a step was given",
                          labels),
          metrics.counter("millrace_stream_step_records_out_total",
                          "Records that a step has emitted", labels),
          metrics.counter("millrace_stream_step_errors_total", "Records that a step has failed on",
                          labels),
          metrics.counter("millrace_stream_step_nanoseconds_total",
                          "Time in a step's operator, from samples", labels)};
}

Counter& skipped_of(Metrics& metrics, const std::string& stream) {
  return metrics.counter("millrace_stream_skipped_total",
                         "Records that failed and were skipped or written to the dead-letter topic",
                         labels_of(stream));
}

Task<> keep_on_control(KernelBroker& broker, std::string stream, bool kept) {
  const auto topic = changelog_of(stream);
  if (kept) {
    broker.keep_topic(topic, concat("It keeps the state of the stream ", stream,
                                    ", which runs; stop the stream first."));
  } else {
    broker.release_topic(topic);
  }
  co_return {};
}

}  // namespace

/// A task that runs, or waits to be tried again. Touched on the runner's shard, but for `task`.
struct StreamRunner::TaskSeat {
  /// The task while it runs.  [the task's shard]
  struct Handle {
    StreamTask* task = nullptr;
    bool stop = false;  // asked for before there was one
  };

  std::shared_ptr<TaskStatus> status = std::make_shared<TaskStatus>();
  std::shared_ptr<Handle> handle = std::make_shared<Handle>();
  Shard* shard = nullptr;
  std::vector<std::string> sources;
  bool running = false;
  bool stop_wanted = false;
  MonoTime again_at;
};

StreamRunner::StreamRunner(StreamParts& parts, PlannedStream planned)
    : parts_(parts),
      planned_(std::move(planned)),
      log_(parts.log, concat("stream.", planned_.spec.name)),
      shard_(parts.partitions.here().shard()) {}

StreamRunner::~StreamRunner() = default;

void StreamRunner::start() {
  if (!session_) {
    session_ = parts_.broker.open_session(
        {.client_id = concat("stream-", spec().name), .software = {}, .peer = {}, .listener = {}});
    spawn(shard_, loop(), "stream");
  }
  wanted_ = true;
  // What a lost operator still holds counts against the memory of the run that it was of. Plugins
  // end on a worker.
  if (state_ == State::failed) {
    parts_.environment.workers().submit([run = std::exchange(run_, nullptr)] {});
  }
  if (state_ == State::failed || state_ == State::stopped) {
    state_ = State::waiting;
    reason_.clear();
  }
  nudged_ = true;
  changed_.notify_all();
}

Task<> StreamRunner::stop() {
  MR_CO_TRY(const auto pass, running_.enter());
  wanted_ = false;
  stop_tasks();
  while (any_running()) MR_CO_CHECK(co_await changed_.wait());
  if (!wanted_) {
    MR_CO_CHECK(co_await release_run());
    MR_CO_CHECK(co_await keep_changelog(false));
    state_ = State::stopped;
    reason_.clear();
  }
  co_return {};
}

Task<> StreamRunner::close() {
  closing_ = true;
  wanted_ = false;
  stop_tasks();
  nudged_ = true;
  changed_.notify_all();
  MR_CO_CHECK(co_await running_.close());
  static_cast<void>(co_await release_run());
  static_cast<void>(co_await keep_changelog(false));
  co_return {};
}

Task<> StreamRunner::loop() {
  MR_CO_TRY(const auto pass, running_.enter());
  while (!closing_ || any_running()) {
    nudged_ = false;
    const auto looked = co_await look();
    if (!looked && looked.error().code == Errc::closed) break;
    if (!looked && state_ != State::failed) wait_for(looked.error().detail);
    tell_metrics();
    if (nudged_) continue;
    static_cast<void>(co_await with_deadline(changed_.wait(), look_interval));
  }
  co_return {};
}

Task<> StreamRunner::look() {
  if (!wanted_) {
    stop_tasks();
    co_return {};
  }
  if (state_ == State::failed) {
    stop_tasks();
    co_return {};
  }
  MR_CO_TRY(const bool there, co_await find_topics());
  if (!there) co_return {};
  if (!run_) MR_CO_CHECK(co_await make_run());
  if (!wanted_ || state_ == State::failed) co_return {};
  start_tasks();
  co_return {};
}

Task<std::map<std::string, std::int32_t>> StreamRunner::count_partitions(
    std::vector<std::string> topics, bool create) {
  MetadataRequest request{.topics = std::vector<TopicName>(), .auto_create = create};
  for (auto& topic : topics) request.topics->push_back({std::move(topic), {}});
  auto asking = parts_.broker.metadata(*session_, std::move(request));
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  std::map<std::string, std::int32_t> counts;
  for (const auto& topic : answer.topics) {
    if (topic.error != ErrorCode::none) continue;
    counts[topic.topic.name] = static_cast<std::int32_t>(topic.partitions.size());
  }
  co_return std::move(counts);
}

// False: the stream waits for a topic.
Task<bool> StreamRunner::find_topics() {
  MR_CO_TRY(auto counts, co_await count_partitions(spec().sources, false));
  std::int32_t most = 0;
  for (const auto& source : spec().sources) {
    const auto found = counts.find(source);
    if (found == counts.end()) {
      wait_for(concat("there is no topic ", source, " yet"));
      co_return false;
    }
    most = std::max(most, found->second);
  }
  if (run_ && !recount_ && counts == counted_) co_return true;
  std::vector<std::string> outputs;
  for (const auto& topic : {spec().sink, spec().dead_letter}) {
    if (!topic.empty()) outputs.push_back(topic);
  }
  MR_CO_TRY(const auto there, co_await count_partitions(outputs, true));
  for (const auto& topic : outputs) {
    if (there.contains(topic)) continue;
    wait_for(concat("there is no topic ", topic, ", and it could not be made"));
    co_return false;
  }
  MR_CO_CHECK(co_await ensure_changelog(most));
  MR_CO_CHECK(co_await keep_changelog(true));
  counted_ = std::move(counts);
  recount_ = false;
  co_return true;
}

Task<> StreamRunner::ensure_changelog(std::int32_t partitions) {
  const auto topic = changelog_of(spec().name);
  MR_CO_TRY(const auto counts, co_await count_partitions({topic}, false));
  const auto found = counts.find(topic);
  if (found == counts.end()) {
    CreateTopicsRequest request{.topics = {}, .timeout = setup_limit};
    auto& wanted = request.topics.emplace_back();
    wanted.name = topic;
    wanted.partitions = partitions;
    wanted.configs = {{"cleanup.policy", "compact"},
                      {"max.message.bytes", changelog_batch_bytes_max}};
    auto creating = parts_.broker.admin().create_topics(*session_, std::move(request));
    MR_CO_TRY(const auto created, co_await std::move(creating));
    const auto& answer = created.at(0);
    if (answer.error == ErrorCode::none || answer.error == ErrorCode::topic_already_exists) {
      co_return {};
    }
    co_return Error{Errc::io, concat("cannot make ", topic, ": ", answer.message)};
  }
  if (found->second >= partitions) co_return {};
  GrowTopicsRequest request{.topics = {}, .timeout = setup_limit};
  request.topics.push_back({topic, partitions, std::nullopt});
  auto growing = parts_.broker.admin().grow_topics(*session_, std::move(request));
  MR_CO_TRY(const auto grown, co_await std::move(growing));
  if (grown.at(0).error == ErrorCode::none) co_return {};
  co_return Error{Errc::io, concat("cannot grow ", topic, ": ", grown.at(0).message)};
}

// Its tasks have the changelog open: it is not deleted under them.
Task<> StreamRunner::keep_changelog(bool kept) {
  auto change = [&broker = parts_.broker, stream = spec().name, kept] {
    return keep_on_control(broker, stream, kept);
  };
  co_return co_await run_on(parts_.environment.control(), std::move(change));
}

Task<> StreamRunner::make_run() {
  auto work = [planned = planned_,
               &parts = parts_]() -> Result<std::vector<std::shared_ptr<OperatorPlugin>>> {
    std::vector<std::shared_ptr<OperatorPlugin>> plugins;
    for (std::size_t at = 0; at < planned.steps.size(); ++at) {
      const auto& step = planned.steps[at];
      MR_TRY(auto plugin, OperatorPlugin::start(
                              step, concat(planned.spec.name, ".", planned.spec.steps[at].name),
                              parts.settings, {parts.environment, parts.log, parts.metrics}));
      plugins.push_back(std::move(plugin));
    }
    return plugins;
  };
  auto starting = run_watched(parts_.environment, setup_limit, std::move(work));
  auto plugins = co_await std::move(starting);
  if (!plugins) {
    fail(plugins.error().detail);
    co_return {};
  }
  std::vector<StepTotals> totals;
  for (const auto& step : spec().steps) {
    totals.push_back(totals_of(parts_.metrics, spec().name, step.name));
  }
  run_ = std::shared_ptr<const StreamRun>(new StreamRun{
      spec(), *std::move(plugins), std::make_shared<StreamMemory>(spec().memory_bytes),
      std::move(totals), skipped_of(parts_.metrics, spec().name), log_});
  co_return {};
}

// Plugins end on a worker, once no task has them.
Task<> StreamRunner::release_run() {
  if (!run_) co_return {};
  auto work = [run = std::exchange(run_, nullptr)]() mutable -> Result<> {
    run.reset();
    return {};
  };
  auto running = run_watched(parts_.environment, setup_limit, std::move(work));
  co_return co_await std::move(running);
}

void StreamRunner::start_tasks() {
  std::int32_t most = 0;
  for (const auto& [topic, count] : counted_) most = std::max(most, count);
  bool all = true;
  for (std::int32_t partition = 0; partition < most; ++partition) {
    std::vector<std::string> sources;
    for (const auto& source : spec().sources) {
      if (counted_.find(source)->second > partition) sources.push_back(source);
    }
    auto& seat = tasks_[partition];
    if (!seat) seat = std::make_unique<TaskSeat>();
    if (seat->running) {
      if (seat->sources == sources) continue;
      seat->stop_wanted = true;  // and started again with what is new
      seat->shard->post([handle = seat->handle] {
        handle->stop = true;
        if (handle->task != nullptr) handle->task->stop();
      });
      continue;
    }
    if (shard_.now() < seat->again_at) {
      all = false;
      continue;
    }
    start_task(partition, std::move(sources));
  }
  state_ = State::running;
  if (all) reason_.clear();
}

void StreamRunner::stop_tasks() {
  for (const auto& [partition, seat] : tasks_) {
    if (!seat->running || seat->stop_wanted) continue;
    seat->stop_wanted = true;
    seat->shard->post([handle = seat->handle] {
      handle->stop = true;
      if (handle->task != nullptr) handle->task->stop();
    });
  }
}

void StreamRunner::start_task(std::int32_t partition, std::vector<std::string> sources) {
  auto pass = running_.enter();
  if (!pass) return;
  auto& seat = *tasks_[partition];
  seat.shard = &parts_.partitions.owner_of(changelog_of(spec().name), partition).shard();
  seat.handle = std::make_shared<TaskSeat::Handle>();
  seat.running = true;
  seat.stop_wanted = false;
  seat.sources = sources;
  auto run = [](StreamRunner& self, std::int32_t number, std::vector<std::string> from,
                Gate::Pass) -> Task<> {
    co_return co_await self.run_task(number, std::move(from));
  };
  spawn(shard_, run(*this, partition, std::move(sources), *std::move(pass)), "stream task");
}

Task<> StreamRunner::run_task(std::int32_t partition, std::vector<std::string> sources) {
  auto& seat = *tasks_[partition];
  auto make = [&parts = parts_, run = run_, status = seat.status, handle = seat.handle, partition,
               sources = std::move(sources)]() -> Task<TaskEnd> {
    // The coroutine has its own copies: this closure goes when the first wait begins.
    return [](StreamParts& with, std::shared_ptr<const StreamRun> of,
              std::shared_ptr<TaskStatus> telling, std::shared_ptr<TaskSeat::Handle> seen,
              std::int32_t number, std::vector<std::string> from) -> Task<TaskEnd> {
      StreamTask task(with, std::move(of), std::move(telling), number, std::move(from));
      seen->task = &task;
      if (seen->stop) task.stop();
      auto end = co_await task.run();
      seen->task = nullptr;
      co_return std::move(end);
    }(parts, run, status, handle, partition, sources);
  };
  auto running = run_on(*seat.shard, std::move(make));
  auto end = co_await std::move(running);
  if (!end) end = TaskEnd{TaskEnd::Kind::retry, {{}, {}, {}, end.error()}};
  ended(partition, *end);
  co_return {};
}

void StreamRunner::ended(std::int32_t partition, const TaskEnd& end) {
  auto& seat = *tasks_[partition];
  seat.running = false;
  if (end.kind == TaskEnd::Kind::failed && state_ != State::failed) fail(to_string(end.failure));
  if (end.kind == TaskEnd::Kind::retry && wanted_) {
    seat.again_at = shard_.now() + retry_after;
    recount_ = true;  // one of its topics may be gone
    reason_ = to_string(end.failure);
    log_.warning("a task of the stream could not go on; it is tried again",
                 {{"partition", partition}, {"reason", reason_}});
  }
  nudged_ = true;
  changed_.notify_all();
}

Task<> StreamRunner::replace(std::size_t step_at, PluginLibrary library, std::string file) {
  MR_CO_TRY(const auto pass, running_.enter());
  auto step = spec().steps[step_at];
  MR_CO_TRY(auto options, step_options(step, library));
  const auto& planned = planned_.steps[step_at];
  auto work = [next = PlannedStream::Step{library, options, planned.place, planned.places},
               name = concat(spec().name, ".", step.name), &parts = parts_] {
    return OperatorPlugin::start(next, name, parts.settings,
                                 {parts.environment, parts.log, parts.metrics});
  };
  auto starting = run_watched(parts_.environment, setup_limit, std::move(work));
  MR_CO_TRY(auto plugin, co_await std::move(starting));
  // Whether it makes operators at all is found out before any task lets go of its own.
  auto probe = [plugin]() -> Result<> {
    MR_TRY(const auto object, plugin->make());
    return {};
  };
  auto probing = run_watched(parts_.environment, setup_limit, std::move(probe));
  MR_CO_CHECK(co_await std::move(probing));

  planned_.spec.steps[step_at].file = std::move(file);
  planned_.steps[step_at].library = library;
  planned_.steps[step_at].options = std::move(options);
  if (run_) {
    auto run = std::make_shared<StreamRun>(*run_);
    run->spec = spec();
    run->plugins[step_at] = plugin;
    run_ = std::move(run);
  }
  std::vector<Pending<>> replacing;
  for (const auto& [partition, seat] : tasks_) {
    if (!seat->running) continue;
    auto make = [handle = seat->handle, step_at, plugin]() -> Task<> {
      return [](std::shared_ptr<TaskSeat::Handle> seen, std::size_t at,
                std::shared_ptr<OperatorPlugin> with) -> Task<> {
        // One that is not there any more is started again with what the run has by then.
        if (seen->task == nullptr) co_return {};
        co_return co_await seen->task->replace(at, std::move(with));
      }(handle, step_at, plugin);
    };
    replacing.push_back(millrace::start(shard_, run_on(*seat->shard, std::move(make))));
  }
  Result<> first_failure;
  for (auto& one : replacing) {
    auto replaced = co_await std::move(one);
    if (!replaced && replaced.error().code != Errc::cancelled && first_failure) {
      first_failure = std::move(replaced);
    }
  }
  co_return first_failure;
}

void StreamRunner::wait_for(std::string reason) {
  if (state_ != State::waiting || reason_ != reason) {
    log_.info("the stream waits", {{"for", reason}});
  }
  state_ = State::waiting;
  reason_ = std::move(reason);
}

void StreamRunner::fail(std::string reason) {
  state_ = State::failed;
  reason_ = std::move(reason);
  log_.error("the stream has failed; mend what is wrong, then start it: millrace stream start",
             {{"stream", spec().name}, {"reason", reason_}});
}

bool StreamRunner::any_running() const {
  return std::ranges::any_of(tasks_, [](const auto& task) { return task.second->running; });
}

std::string_view StreamRunner::state_name() const {
  switch (state_) {
    case State::stopped: return "stopped";
    case State::waiting: return "waiting";
    case State::running: return "running";
    case State::failed: return "failed";
  }
  return "";
}

void StreamRunner::tell_metrics() {
  std::int64_t lag = 0;
  std::uint64_t bytes = 0;
  for (const auto& [partition, seat] : tasks_) {
    const auto fact = seat->status->fact();
    bytes += fact.state_bytes;
    for (const auto& source : fact.sources) lag += std::max<std::int64_t>(source.lag, 0);
  }
  const auto labels = labels_of(spec().name);
  parts_.metrics.gauge("millrace_stream_lag", "Records that a stream has still to process", labels)
      .set(lag);
  parts_.metrics.gauge("millrace_stream_state_bytes", "Keyed state of a stream, in memory", labels)
      .set(static_cast<std::int64_t>(bytes));
  parts_.metrics
      .gauge("millrace_stream_running", "1 while a stream runs; 0: stopped, waiting or failed",
             labels)
      .set(state_ == State::running ? 1 : 0);
}

StreamFact StreamRunner::fact() const {
  StreamFact fact{spec(), declared_in(), std::string(state_name()), reason_, {}, {}};
  for (std::size_t at = 0; at < spec().steps.size(); ++at) {
    const auto& step = spec().steps[at];
    const auto& library = planned_.steps[at].library;
    const auto totals = totals_of(parts_.metrics, spec().name, step.name);
    fact.steps.push_back({.name = step.name,
                          .plugin = step.plugin,
                          .id = library.descriptor->id,
                          .version = library.descriptor->version,
                          .path = library.path,
                          .records_in = totals.records_in.value(),
                          .records_out = totals.records_out.value(),
                          .errors = totals.errors.value(),
                          .nanoseconds = totals.nanoseconds.value()});
  }
  for (const auto& [partition, seat] : tasks_) {
    fact.tasks.push_back(seat->status->fact());
    const auto entries = seat->status->state_entries();
    for (std::size_t at = 0; at < std::min(entries.size(), fact.steps.size()); ++at) {
      fact.steps[at].state_entries += entries[at];
    }
  }
  return fact;
}

}  // namespace millrace::kernel
