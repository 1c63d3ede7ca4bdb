#include "kernel/streams/stream_runner.h"

#include <algorithm>
#include <utility>

#include "kernel/config/text.h"
#include "kernel/streams/watchdog.h"

namespace millrace::kernel {

namespace {

constexpr Duration look_interval = std::chrono::seconds(1);
constexpr Duration retry_after = std::chrono::seconds(1);
constexpr Duration others_stop_max = std::chrono::seconds(10);
constexpr Duration remove_again_after = std::chrono::milliseconds(100);
// To start plugins and make operators, beside what the stream allows for a record.
const Duration setup_limit = std::chrono::seconds(30);

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
  std::vector<StreamSource> sources;
  bool running = false;
  bool stop_wanted = false;
  MonoTime again_at;
};

StreamRunner::StreamRunner(StreamParts& parts, PlannedStream planned)
    : parts_(parts),
      planned_(std::move(planned)),
      log_(parts.log, concat("stream.", planned_.spec.name)),
      changelog_(parts, planned_.spec.name),
      shard_(parts.partitions.here().shard()) {}

StreamRunner::~StreamRunner() = default;

void StreamRunner::start() {
  if (!std::exchange(looping_, true)) spawn(shard_, loop(), "stream");
  wanted_ = true;
  // What a lost operator still holds counts against the memory of the run that it was of. Plugins
  // end on a worker.
  if (state_ == State::failed) {
    parts_.environment.workers().submit([run = std::exchange(run_, nullptr)] {});
  }
  if (state_ == State::failed || state_ == State::stopped) {
    state_ = State::waiting;
    reason_.clear();
    failure_.reset();
  }
  nudged_ = true;
  changed_.notify_all();
}

Result<> StreamRunner::skip_failed() {
  if (state_ != State::failed) {
    return Error{Errc::conflict, "there is nothing to skip: the stream has not failed"};
  }
  if (!failure_ || failure_->step.empty() || failure_->of_timer ||
      !sources_.contains(failure_->source.topic)) {
    return Error{Errc::conflict, concat("it is not one record that the stream has failed on, so "
                                        "none can be skipped: ",
                                        reason_)};
  }
  skip_ = FailedRecord{failure_->source, failure_->offset};
  log_.warning("the record that the stream has failed on is skipped, as was asked for",
               {{"source", to_string(skip_->source)}, {"offset", skip_->offset.value}});
  return {};
}

void StreamRunner::refuse(std::string reason) {
  fail(std::move(reason));
  tell_metrics();
}

Task<> StreamRunner::remove_state() {
  MR_CO_TRY(const auto pass, running_.enter());
  // Whoever is making it has ended then, and does not begin again.
  MR_CO_TRY(const auto turn, co_await parts_.making_topics->lock());
  MR_CO_CHECK(co_await changelog_.keep(false));
  open_session();
  // Other brokers stop their tasks too, as soon as they hear of it.
  const auto& cluster = parts_.partitions.here().cluster();
  const bool alone = !cluster || cluster->brokers.size() < 2;
  const auto until = shard_.now() + others_stop_max;
  while (true) {
    auto removed = co_await changelog_.remove(*session_);
    if (removed || alone || shard_.now() > until) co_return removed;
    MR_CO_CHECK(co_await sleep(remove_again_after));
  }
}

void StreamRunner::open_session() {
  if (session_) return;
  session_ = parts_.broker.open_session(
      {.client_id = concat("stream-", spec().name), .software = {}, .peer = {}, .listener = {}});
}

Task<> StreamRunner::stop() {
  MR_CO_TRY(const auto pass, running_.enter());
  wanted_ = false;
  stop_tasks();
  while (any_running()) MR_CO_CHECK(co_await changed_.wait());
  if (!wanted_) {
    MR_CO_CHECK(co_await release_run());
    MR_CO_CHECK(co_await changelog_.keep(false));
    skip_.reset();
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
  static_cast<void>(co_await changelog_.keep(false));
  co_return {};
}

Task<> StreamRunner::loop() {
  MR_CO_TRY(const auto pass, running_.enter());
  open_session();
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

Task<StreamRunner::Topics> StreamRunner::find(std::vector<std::string> topics, bool create) {
  MetadataRequest request{.topics = std::vector<TopicName>(), .auto_create = create};
  for (auto& topic : topics) request.topics->push_back({std::move(topic), {}});
  auto asking = parts_.broker.metadata(*session_, std::move(request));
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  Topics found;
  for (const auto& topic : answer.topics) {
    if (topic.error != ErrorCode::none) continue;
    found[topic.topic.name] = {topic.topic.id, static_cast<std::int32_t>(topic.partitions.size())};
  }
  co_return std::move(found);
}

// False: the stream waits for a topic.
Task<bool> StreamRunner::find_topics() {
  MR_CO_TRY(auto sources, co_await find(spec().sources, false));
  for (const auto& source : spec().sources) {
    if (sources.contains(source)) continue;
    wait_for(concat("there is no topic ", source, " yet"));
    co_return false;
  }
  if (run_ && !recount_ && sources == sources_) co_return true;
  MR_CO_TRY(const bool made, co_await make_topics(sources));
  if (!made) co_return false;
  if (sources_ != sources) skip_.reset();  // it was one of another topic
  sources_ = std::move(sources);
  recount_ = false;
  co_return true;
}

// One stream at a time, so that those which come later are not begun once the broker stops.
Task<bool> StreamRunner::make_topics(const Topics& sources) {
  MR_CO_TRY(const auto turn, co_await parts_.making_topics->lock());
  if (!wanted_) co_return false;
  std::vector<std::string> outputs;
  for (const auto& topic : {spec().sink, spec().dead_letter}) {
    if (!topic.empty()) outputs.push_back(topic);
  }
  MR_CO_TRY(const auto there, co_await find(outputs, true));
  for (const auto& topic : outputs) {
    if (there.contains(topic)) continue;
    wait_for(concat("there is no topic ", topic, ", and it could not be made"));
    co_return false;
  }
  MR_CO_TRY(const auto kept, co_await find({changelog_.topic()}, false));
  std::optional<std::int32_t> known;
  if (!kept.empty()) known = kept.begin()->second.partitions;
  MR_CO_CHECK(co_await changelog_.ensure(*session_, known, most_partitions(sources)));
  MR_CO_CHECK(co_await changelog_.keep(true));
  co_return true;
}

std::int32_t StreamRunner::most_partitions(const Topics& topics) {
  std::int32_t most = 0;
  for (const auto& [name, topic] : topics) most = std::max(most, topic.partitions);
  return most;
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
  const auto most = most_partitions(sources_);
  // A source that was made anew may have fewer.
  std::erase_if(tasks_,
                [most](const auto& task) { return task.first >= most && !task.second->running; });
  for (auto task = tasks_.lower_bound(most); task != tasks_.end(); ++task) stop_task(*task->second);
  bool all = true;
  for (std::int32_t partition = 0; partition < most; ++partition) {
    if (!leads(partition)) {
      const auto seated = tasks_.find(partition);
      if (seated == tasks_.end()) continue;
      if (seated->second->running) {
        stop_task(*seated->second);
      } else {
        tasks_.erase(seated);
      }
      continue;
    }
    std::vector<StreamSource> sources;
    for (const auto& name : spec().sources) {
      const auto& source = sources_.find(name)->second;
      if (source.partitions > partition) sources.push_back({name, source.id});
    }
    auto& seat = tasks_[partition];
    if (!seat) seat = std::make_unique<TaskSeat>();
    if (seat->running) {
      // Else it is started again with what is new.
      if (seat->sources != sources) stop_task(*seat);
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

// What is not known yet is tried.
bool StreamRunner::leads(std::int32_t partition) const {
  const auto& cluster = parts_.partitions.here().cluster();
  const auto* topic = cluster ? cluster->find(std::string_view(changelog_.topic())) : nullptr;
  const auto at = static_cast<std::size_t>(partition);
  if (!topic || at >= topic->partitions.size()) return true;
  return topic->partitions[at].leader == parts_.broker.config().id;
}

void StreamRunner::stop_tasks() {
  for (const auto& [partition, seat] : tasks_) stop_task(*seat);
}

void StreamRunner::stop_task(TaskSeat& seat) {
  if (!seat.running || seat.stop_wanted) return;
  seat.stop_wanted = true;
  seat.shard->post([handle = seat.handle] {
    handle->stop = true;
    if (handle->task != nullptr) handle->task->stop();
  });
}

void StreamRunner::start_task(std::int32_t partition, std::vector<StreamSource> sources) {
  auto pass = running_.enter();
  if (!pass) return;
  auto& seat = *tasks_[partition];
  seat.shard = &parts_.partitions.owner_of(changelog_.topic(), partition).shard();
  seat.handle = std::make_shared<TaskSeat::Handle>();
  seat.running = true;
  seat.stop_wanted = false;
  seat.sources = std::move(sources);
  auto run = [](StreamRunner& self, std::int32_t number, Gate::Pass) -> Task<> {
    co_return co_await self.run_task(number);
  };
  spawn(shard_, run(*this, partition, *std::move(pass)), "stream task");
}

Task<> StreamRunner::run_task(std::int32_t partition) {
  auto& seat = *tasks_[partition];
  TaskInputs inputs{partition, seat.sources, skip_};
  auto make = [&parts = parts_, run = run_, status = seat.status, handle = seat.handle,
               inputs = std::move(inputs)]() -> Task<TaskEnd> {
    // The coroutine has its own copies: this closure goes when the first wait begins.
    return [](StreamParts& with, std::shared_ptr<const StreamRun> of,
              std::shared_ptr<TaskStatus> telling, std::shared_ptr<TaskSeat::Handle> seen,
              TaskInputs from) -> Task<TaskEnd> {
      StreamTask task(with, std::move(of), std::move(telling), std::move(from));
      seen->task = &task;
      if (seen->stop) task.stop();
      auto end = co_await task.run();
      seen->task = nullptr;
      co_return std::move(end);
    }(parts, run, status, handle, inputs);
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
  if (end.kind == TaskEnd::Kind::failed && state_ != State::failed) {
    fail(to_string(end.failure));
    failure_ = end.failure;
    skip_.reset();
  }
  if (end.kind == TaskEnd::Kind::retry && wanted_) {
    seat.again_at = shard_.now() + retry_after;
    recount_ = true;  // one of its topics may be gone
    if (leads(partition)) {
      reason_ = to_string(end.failure);
      log_.warning("a task of the stream could not go on; it is tried again",
                   {{"partition", partition}, {"reason", reason_}});
    } else {
      log_.info("a task of the stream goes on at another broker",
                {{"partition", partition}, {"reason", to_string(end.failure)}});
    }
  }
  nudged_ = true;
  changed_.notify_all();
}

Task<> StreamRunner::replace(std::size_t step_at, PluginLibrary library, std::string file) {
  MR_CO_TRY(const auto pass, running_.enter());
  auto step = spec().steps[step_at];
  step.plugin = library.descriptor->id;  // whose options they are from now on
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
  auto probe = [plugin, stream = spec()]() -> Result<> {
    MR_TRY(const auto object, plugin->make());
    return plugin->check_topics(stream);
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
    const auto* library = is_planned() ? &planned_.steps[at].library : nullptr;
    const auto totals = totals_of(parts_.metrics, spec().name, step.name);
    fact.steps.push_back({.name = step.name,
                          .plugin = step.plugin,
                          .id = library ? library->descriptor->id : "",
                          .version = library ? library->descriptor->version : "",
                          .path = library ? library->path : step.file,
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
