// A task's life and its turns.
#include "kernel/streams/stream_task.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "kernel/config/text.h"
#include "kernel/streams/watchdog.h"

namespace millrace::kernel {

namespace {

constexpr Duration fetch_wait_max = std::chrono::seconds(30);
// Of one source, and of all: what a turn reads into memory.
constexpr std::int32_t source_bytes_max = 2 << 20;
constexpr std::int32_t turn_bytes_max = 4 << 20;
// What a stop leaves to an operator that is busy with one record.
constexpr Duration stop_limit = std::chrono::milliseconds(1500);
// A changelog of so many bytes is read again in no time.
constexpr std::uint64_t snapshot_bytes_min = 32UL << 20;
constexpr std::uint64_t last_snapshot_bytes_min = 4UL << 20;
// Another broker leads a source by now, and is not found yet.
constexpr Duration read_again_after = std::chrono::milliseconds(200);
// How long a snapshot waits for all replicas of what it holds.
constexpr Duration settle_max = std::chrono::seconds(5);

bool has_moved(ErrorCode error) {
  return error == ErrorCode::not_leader_or_follower || error == ErrorCode::leader_not_available;
}

std::uint64_t bytes_of(const TurnInput& input) {
  std::uint64_t bytes = 0;
  for (const auto& source : input.sources) bytes += source.batches.size();
  return bytes;
}

// Memory may run out in our own code as well.
Result<TurnResult> run_safely(TurnState& state, const TurnInput& input) noexcept {
  try {
    return state.run(input);
  } catch (const std::exception& thrown) {
    return Error{Errc::internal, concat("a turn failed: ", thrown.what())};
  }
}

}  // namespace

StreamTask::StreamTask(StreamParts& parts, std::shared_ptr<const StreamRun> run,
                       std::shared_ptr<TaskStatus> status, TaskInputs inputs)
    : parts_(parts),
      run_(std::move(run)),
      status_(std::move(status)),
      partition_(inputs.partition),
      sources_(std::move(inputs.sources)),
      skip_(std::move(inputs.skip)),
      log_(run_->log),
      shard_(parts.partitions.here().shard()),
      limit_(std::chrono::milliseconds(run_->spec.timeout_ms)) {}

StreamTask::~StreamTask() = default;

Task<TaskEnd> StreamTask::run() {
  tell_state("restoring");
  auto done = co_await prepare();
  if (done) done = co_await restore();
  if (done) done = co_await run_turns();
  if (done && !failure_ && since_snapshot_ > last_snapshot_bytes_min) {
    done = co_await keep_snapshot();
  }
  static_cast<void>(co_await release_state());
  replacements_.clear();
  changelog_.reset();
  TaskEnd end;
  if (failure_) {
    end = {TaskEnd::Kind::failed, *std::move(failure_)};
  } else if (!done && !stopping_) {
    end = {TaskEnd::Kind::retry, {{}, {}, {}, std::move(done).error()}};
  }
  if (end.kind == TaskEnd::Kind::stopped) {
    tell_state("ended");
  } else {
    tell_state(end.kind == TaskEnd::Kind::retry ? "retrying" : "ended", to_string(end.failure));
  }
  co_return std::move(end);
}

void StreamTask::stop() noexcept {
  stopping_ = true;
  limit_ = std::min(limit_, stop_limit);
  if (state_) state_->hurry();
  if (waiting_) waiting_->cancel();
}

Pending<> StreamTask::replace(std::size_t step_at, std::shared_ptr<OperatorPlugin> plugin) {
  auto [done, pending] = make_pending<>();
  replacements_.push_back({step_at, std::move(plugin), std::move(done)});
  if (state_) state_->hurry();
  if (waiting_) waiting_->cancel();
  return std::move(pending);
}

template <class T>
Task<T> StreamTask::interruptible(Task<T> wait) {
  if (interrupted()) co_return Error{Errc::cancelled, "interrupted"};
  waiting_ = std::make_unique<CancelScope>(co_await this_scope());
  auto result = co_await std::move(wait).within(*waiting_);
  waiting_.reset();
  co_return std::move(result);
}

Task<> StreamTask::run_turns() {
  tell_state("running");
  while (!stopping_ && !failure_) {
    MR_CO_CHECK(co_await apply_replacements());
    MR_CO_CHECK(co_await turn());
  }
  co_return {};
}

Result<> StreamTask::check_led() const {
  if (is_led()) return {};
  return Error{Errc::fenced, concat(to_string(changelog_->id()), " is led by another broker")};
}

Task<> StreamTask::turn() {
  MR_CO_CHECK(check_led());
  MR_CO_TRY(auto input, co_await read());
  if (!input) co_return {};
  // Back-pressure: as a connection's, its memory is a share of the broker's.
  auto leasing = parts_.broker.memory(shard_).acquire(bytes_of(*input));
  auto lease = co_await interruptible(std::move(leasing));
  if (!lease) {
    if (interrupted()) co_return {};
    co_return lease.error();
  }
  co_return co_await process(*std::move(input));
}

Task<> StreamTask::process(TurnInput input) {
  state_->use(parts_.partitions.here().codecs());
  auto work = [state = state_, input = std::move(input)] { return run_safely(*state, input); };
  auto running = run_watched(parts_.environment, limit_, std::move(work));
  auto result = co_await std::move(running);
  if (!result) {
    if (result.error().code == Errc::timed_out) {
      given_up();
      co_return {};
    }
    state_.reset();
    co_return result.error();
  }
  MR_CO_CHECK(co_await write(std::move(result->outputs)));
  if (failure_) co_return {};
  if (result->changelog) MR_CO_CHECK(co_await commit(*std::move(result->changelog)));
  if (failure_) co_return {};
  tell(*result);
  failure_ = std::move(result->failure);
  if (failure_ || stopping_) co_return {};
  state_->outputs().forget_missing();
  if (result->unknown_topic) MR_CO_CHECK(co_await learn(*std::move(result->unknown_topic)));
  MR_CO_CHECK(co_await learn_again());
  if (since_snapshot_ >= std::max(snapshot_bytes_min, result->state_bytes)) {
    MR_CO_CHECK(co_await keep_snapshot());
  }
  if (result->pause > Duration::zero()) {
    const auto slept = co_await interruptible(sleep(result->pause));
    if (!slept && !interrupted()) co_return slept.error();
  }
  co_return {};
}

// The worker may still be in it: it is left to that, and never looked at again.
void StreamTask::given_up() {
  const auto& chain = state_->chain();
  failure_ =
      StreamFailure{chain.name_of(chain.running_step()),
                    {sources_.size() == 1 ? sources_.front().topic : "partition", partition_},
                    chain.running_record(),
                    {Errc::timed_out,
                     concat("the operator did not come back within ",
                            std::chrono::duration_cast<std::chrono::milliseconds>(limit_).count(),
                            " ms; its thread is lost, another has taken its place")}};
  state_.reset();
}

Task<std::optional<TurnInput>> StreamTask::read() {
  FetchRequest request{.wait_max = fetch_wait_max,
                       .bytes_min = 1,
                       .bytes_max = turn_bytes_max,
                       .isolation = Isolation::read_committed,
                       .by_topic_id = true,
                       .rack = {},
                       .topics = {},
                       .forgotten = {}};
  for (const auto& source : sources_) {
    auto& asked = request.topics.emplace_back(TopicFetch{{{}, source.id}, {}});
    asked.partitions.push_back({.partition = partition_,
                                .current_leader_epoch = {},
                                .from = state_->positions().find(source.topic)->second.next,
                                .last_fetched_epoch = {},
                                .log_start = {},
                                .bytes_max = source_bytes_max});
  }
  auto fetching = access_->fetch(std::move(request));
  auto answer = co_await interruptible(std::move(fetching));
  if (!answer) {
    if (interrupted()) co_return std::nullopt;
    co_return answer.error();
  }
  TurnInput input{.sources = {}, .now = parts_.environment.clock().wall()};
  bool moved = false;
  for (auto& topic : answer->topics) {
    const auto source = std::ranges::find(sources_, topic.topic.id, &StreamSource::id);
    if (source == sources_.end()) continue;
    for (auto& fetched : topic.partitions) {
      moved = moved || has_moved(fetched.error);
      MR_CO_CHECK(co_await take(fetched, *source, input));
    }
  }
  if (moved) {
    const auto slept = co_await interruptible(sleep(read_again_after));
    if (!slept && !interrupted()) co_return slept.error();
  }
  if (input.sources.empty()) co_return std::nullopt;
  co_return std::move(input);
}

Task<bool> StreamTask::take(PartitionFetched& fetched, const StreamSource& source,
                            TurnInput& input) {
  const auto& topic = source.topic;
  if (has_moved(fetched.error)) co_return false;
  if (fetched.error == ErrorCode::offset_out_of_range) {
    MR_CO_CHECK(co_await reset_position(source));
    co_return false;
  }
  if (fetched.error != ErrorCode::none) {
    co_return Error{Errc::io,
                    concat("cannot read ", topic, "-", partition_, ": ", name_of(fetched.error))};
  }
  ends_[topic] = fetched.last_stable;
  if (fetched.records.empty()) co_return false;
  input.sources.push_back({topic, std::move(fetched.records),
                           std::move(fetched.aborted).value_or(std::vector<AbortedTransaction>())});
  co_return true;
}

// Retention has removed what was next; or the log has lost its end, and begins again there.
Task<> StreamTask::reset_position(const StreamSource& source) {
  const auto& topic = source.topic;
  const auto position = state_->positions().find(topic)->second.next;
  MR_CO_TRY(const auto start, co_await find_offset(topic, OffsetSpec::earliest));
  MR_CO_TRY(const auto end, co_await find_offset(topic, OffsetSpec::latest));
  const auto next = position > end ? end : start;
  log_.warning("the records that were next are not there; the stream goes on with others",
               {{"source", to_string(TopicPartition{topic, partition_})},
                {"position", position.value},
                {"log_start", start.value},
                {"log_end", end.value},
                {"goes_on_at", next.value}});
  state_->set_position(topic, {next, source.id});
  co_return {};
}

Task<> StreamTask::apply_replacements() {
  while (!replacements_.empty()) {
    auto next = std::move(replacements_.front());
    replacements_.erase(replacements_.begin());
    auto work = [state = state_, plugin = std::move(next.plugin),
                 step_at = next.step_at]() -> Result<> {
      MR_TRY(auto object, plugin->make());
      // What was there ends here, on the worker.
      const auto before = state->chain().replace(step_at, {plugin, std::move(object)});
      return {};
    };
    auto running = run_watched(parts_.environment, limit_, std::move(work));
    auto replaced = co_await std::move(running);
    const bool lost = !replaced && replaced.error().code == Errc::timed_out;
    next.done.resolve(std::move(replaced));
    if (lost) {
      given_up();
      co_return {};
    }
  }
  co_return {};
}

// Of what stays: what is not on all replicas yet may be taken back by another leader.
Task<> StreamTask::keep_snapshot() {
  auto settling = with_deadline(changelog_->reached(committed_), settle_max);
  const auto settled = co_await std::move(settling);
  if (!settled) co_return {};  // another time
  auto work = [state = state_, at = committed_]() -> Result<Buffer> { return state->snapshot(at); };
  auto making = on_worker(parts_.environment.workers(), std::move(work));
  MR_CO_TRY(auto snapshot, co_await std::move(making));
  MR_CO_CHECK(co_await changelog_->put_aggregate_snapshot(committed_, std::move(snapshot)));
  since_snapshot_ = 0;
  co_return {};
}

// Operators end on a worker: what they do then is their own code too.
Task<> StreamTask::release_state() {
  if (!state_) co_return {};
  auto work = [state = std::exchange(state_, nullptr)]() mutable -> Result<> {
    state.reset();
    return {};
  };
  auto running = run_watched(parts_.environment, limit_, std::move(work));
  co_return co_await std::move(running);
}

void StreamTask::tell(const TurnResult& result) {
  for (std::size_t at = 0; at < result.counts.size(); ++at) {
    const auto& counts = result.counts[at];
    const auto& totals = run_->totals[at];
    totals.records_in.add(counts.records_in);
    totals.records_out.add(counts.records_out);
    totals.errors.add(counts.errors);
    totals.nanoseconds.add(counts.nanoseconds);
  }
  if (result.skipped > 0) run_->skipped.add(result.skipped);
  status_->set_state_entries(result.state_entries);
  status_->change([&](StreamTaskFact& fact) { fact.state_bytes = result.state_bytes; });
  tell_positions(result.positions);
}

void StreamTask::tell_positions(const SourcePositions& positions) {
  status_->change([&](StreamTaskFact& fact) {
    fact.sources.clear();
    for (const auto& [topic, id] : sources_) {
      const auto position = positions.find(topic);
      const auto end = ends_.find(topic);
      auto& source = fact.sources.emplace_back(StreamSourceFact{topic, {}, -1});
      if (position == positions.end()) continue;
      source.position = position->second.next;
      if (end == ends_.end()) continue;
      source.lag = std::max<std::int64_t>(end->second - source.position, 0);
    }
  });
}

void StreamTask::tell_state(std::string_view state, std::string_view reason) {
  status_->change([&](StreamTaskFact& fact) {
    fact.partition = partition_;
    fact.state = state;
    fact.reason = reason;
  });
}

}  // namespace millrace::kernel
