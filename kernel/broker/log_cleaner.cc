#include "kernel/broker/log_cleaner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <utility>

namespace millrace::kernel {

namespace {

using std::chrono::milliseconds;

constexpr double all_percent = 100;

// Times in settings may be longer than a clock can count, or none at all.
constexpr std::int64_t wait_ms_max = 365LL * 24 * 3600 * 1000;

std::int64_t integer(const ConfigMap& settings, const char* name, std::int64_t fallback) {
  const auto found = settings.find(name);
  return found == settings.end() ? fallback : integer_of(found->second).value_or(fallback);
}

double number(const ConfigMap& settings, const char* name, double fallback) {
  const auto found = settings.find(name);
  return found == settings.end() ? fallback : number_of(found->second).value_or(fallback);
}

std::int64_t percent(double ratio) { return std::llround(ratio * all_percent); }

// A disk that fails is asked again after this long, then after twice as long.
constexpr Duration disk_pause_min = std::chrono::seconds(15);

// It is no fault of the log: it goes, it was cut, or we are told to stop.
bool is_harmless(Errc code) {
  return code == Errc::cancelled || code == Errc::closed || code == Errc::conflict ||
         code == Errc::not_found || code == Errc::out_of_range;
}

Task<CompactionDone> clean_on(ShardState& state, TopicPartition id, CompactionMeans means,
                              std::shared_ptr<std::atomic<bool>> stopping) {
  const auto partition = state.find(id.topic, id.partition);
  if (!partition) co_return Error{Errc::not_found, to_string(id) + " is not here any more"};
  auto told_to_stop = [stopping = std::move(stopping)] { return stopping->load(); };
  co_return co_await partition->compact(means, std::move(told_to_stop));
}

}  // namespace

LogCleanerSettings LogCleanerSettings::of(const ConfigMap& settings) {
  LogCleanerSettings of;
  const auto enable = settings.find("log.cleaner.enable");
  of.enable = enable == settings.end() || enable->second != "false";
  of.threads = integer(settings, "log.cleaner.threads", of.threads);
  const auto backoff_ms = integer(settings, "log.cleaner.backoff.ms", 15'000);
  of.backoff = milliseconds(std::clamp<std::int64_t>(backoff_ms, 1, wait_ms_max));
  const auto rate = number(settings, "log.cleaner.io.max.bytes.per.second", HUGE_VAL);
  if (rate < static_cast<double>(RateLimit::unlimited)) {
    of.io_bytes_per_second = static_cast<std::int64_t>(rate);
  }
  auto& means = of.means;
  const auto buffer = integer(settings, "log.cleaner.dedupe.buffer.size",
                              static_cast<std::int64_t>(means.map_bytes_max));
  means.map_bytes_max = static_cast<std::uint64_t>(std::max<std::int64_t>(buffer, 0) /
                                                   std::max<std::int64_t>(of.threads, 1));
  means.map_load_factor_max =
      number(settings, "log.cleaner.io.buffer.load.factor", means.map_load_factor_max);
  means.step_bytes = static_cast<std::uint64_t>(
      std::max<std::int64_t>(integer(settings, "log.cleaner.io.buffer.size", 524'288), 1));
  return of;
}

LogCleaner::Told::Told(Metrics& metrics)
    : uncleanable_partitions(metrics.gauge(
          "millrace_log_cleaner_uncleanable_partitions",
          "Partitions whose compaction failed; the log says why, and it is tried again")),
      uncleanable_bytes(metrics.gauge("millrace_log_cleaner_uncleanable_bytes",
                                      "What of those could be compacted")),
      dirty_percent_max(metrics.gauge("millrace_log_cleaner_max_dirty_percent",
                                      "Of the dirtiest compacted log, what is not compacted")),
      overdue_ms_max(metrics.gauge(
          "millrace_log_cleaner_max_compaction_delay_ms",
          "How long ago max.compaction.lag.ms should have been kept, of the latest log")),
      running(metrics.gauge("millrace_log_cleaner_running", "Logs that are compacted now")),
      last_run(metrics.gauge("millrace_log_cleaner_last_run_timestamp_seconds",
                             "When a pass of compaction last ended")),
      map_percent(metrics.gauge("millrace_log_cleaner_buffer_utilization_percent",
                                "What the last pass took of its map of keys")),
      recopy_percent(metrics.gauge("millrace_log_cleaner_recopy_percent",
                                   "What the last pass left of what it went through")),
      dead_threads(
          metrics.gauge("millrace_log_cleaner_dead_threads", "None: a pass that fails ends alone")),
      passes(metrics.counter("millrace_log_cleaner_passes_total", "Passes of compaction")),
      bytes_read(metrics.counter("millrace_log_cleaner_read_bytes_total",
                                 "Bytes that compaction has read")),
      bytes_written(metrics.counter("millrace_log_cleaner_written_bytes_total",
                                    "Bytes that compaction has written")),
      bytes_removed(metrics.counter("millrace_log_cleaner_removed_bytes_total",
                                    "Bytes by which compaction has made logs smaller")),
      records_removed(metrics.counter("millrace_log_cleaner_removed_records_total",
                                      "Records that compaction has removed")) {}

LogCleaner::LogCleaner(BrokerParts& parts, PartitionMap& partitions,
                       std::function<ConfigMap()> settings, std::string folder)
    : parts_(parts),
      partitions_(partitions),
      settings_of_(std::move(settings)),
      folder_(std::move(folder)),
      told_(parts.metrics) {}

void LogCleaner::start() {
  parts_.environment.random().fill(secret_);
  spawn(parts_.environment.control(), loop(), "log cleaner", &background_);
}

// Whatever a turn comes to, there is another one.
Task<> LogCleaner::loop() {
  MR_CO_TRY(const auto inside, running_.enter());
  while (!*stopping_) {
    auto done = co_await turn();
    if (!done && done.error().code != Errc::cancelled) {
      parts_.log.error("compaction could not look at all logs; it looks again",
                       {{"error", to_string(done.error())}});
    }
    MR_CO_CHECK(co_await until_next_turn());
  }
  co_return {};
}

// A look is at all logs, of which there may be ten thousand that want a pass: those that the last
// one has found are begun one after the other, as long as what it has found is not too old.
Task<> LogCleaner::until_next_turn() {
  const auto until = now() + settings_.backoff;
  while (!*stopping_) {
    if (std::exchange(ended_since_, false)) {
      if (wanted_.empty()) co_return {};
      begin_passes();
    }
    if (now() >= until) co_return {};
    auto waiting = with_deadline(ended_.wait(), until - now());
    const auto ended = co_await std::move(waiting);
    if (!ended && ended.error().code != Errc::timed_out) co_return ended.error();
  }
  co_return {};
}

Task<> LogCleaner::turn() {
  settings_ = LogCleanerSettings::of(settings_of_());
  rate_.set_rate(settings_.io_bytes_per_second, now());
  wanted_.clear();
  if (!settings_.enable) co_return {};
  MR_CO_TRY(const auto seen, co_await look());
  tell(seen);
  const bool needs_room = std::ranges::any_of(
      waiting_, [](const auto& one) { return one.second.free_bytes.has_value(); });
  free_now_.reset();
  if (needs_room) {
    MR_CO_TRY(free_now_, co_await free_bytes());
  }
  want(seen);
  begin_passes();
  co_return co_await checkpoint(seen);
}

Task<std::vector<LogCleaner::Seen>> LogCleaner::look() {
  if (!noted_) {
    MR_CO_TRY(const auto offsets, co_await parts_.storage.checkpointed(CheckpointKind::cleaner));
    Offsets known;
    for (const auto& one : offsets) known.emplace(one.partition, one.offset);
    noted_ = std::make_shared<const Offsets>(std::move(known));
  }
  std::vector<Seen> seen;
  for (const auto& state : partitions_.shards()) {
    auto make = [state = state.get(), noted = noted_] { return look_on(state, noted); };
    MR_CO_TRY(auto some, co_await run_on(state->shard(), std::move(make)));
    std::ranges::move(some, std::back_inserter(seen));
  }
  co_return std::move(seen);
}

// One that cannot be looked at is passed over: it says why when it is used. What is not compacted
// any more is noted as dirty from its start, for when it is again.
Task<std::vector<LogCleaner::Seen>> LogCleaner::look_on(ShardState* state,
                                                        std::shared_ptr<const Offsets> noted) {
  MR_CO_TRY(const auto inside, state->running().enter());
  std::vector<Seen> seen;
  for (const auto& partition : state->all()) {
    const auto before = noted->find(partition->id());
    const bool known = before != noted->end() && before->second != Offset{0};
    if (!partition->config().cleanup_compact && !known) continue;
    std::optional<Offset> cleaned;
    if (before != noted->end()) cleaned = before->second;
    const auto need = co_await partition->compaction_need(cleaned);
    if (!need) continue;
    const auto cleaned_to = need->compacted ? partition->compaction().cleaned_to : Offset{0};
    const auto segment_bytes = static_cast<std::uint64_t>(partition->config().segment_bytes);
    const auto room = std::min(segment_bytes, need->range.clean_bytes + need->range.dirty_bytes);
    seen.push_back({partition->id(), *need, cleaned_to, room});
  }
  co_return std::move(seen);
}

// A pass reads all that is dirty before it writes: it is not tried on the off-chance.
bool LogCleaner::may_begin(const Seen& one) const {
  if (cleaning_.contains(one.id)) return false;
  const auto found = waiting_.find(one.id);
  if (found == waiting_.end() || found->second.until <= now()) return true;
  const auto& before = found->second.free_bytes;
  return before && free_now_ && *free_now_ >= *before + one.room;
}

// None: the system does not say.
Task<std::optional<std::uint64_t>> LogCleaner::free_bytes() const {
  auto work = [&files = parts_.environment.files(), folder = folder_] {
    return files.space(folder);
  };
  auto asking = on_worker(parts_.environment.workers(), std::move(work));
  const auto space = co_await std::move(asking);
  co_return space ? std::optional(space->bytes_free) : std::optional<std::uint64_t>();
}

// The dirtiest first.
void LogCleaner::want(const std::vector<Seen>& seen) {
  std::vector<const Seen*> wanted;
  for (const auto& one : seen) {
    if (one.need.wanted && may_begin(one)) wanted.push_back(&one);
  }
  std::ranges::sort(wanted, [](const Seen* a, const Seen* b) {
    const auto of_a = a->need.range.dirty_ratio();
    const auto of_b = b->need.range.dirty_ratio();
    return of_a != of_b ? of_a > of_b : a->id < b->id;
  });
  wanted_.clear();
  for (const auto* one : wanted) wanted_.push_back(one->id);
}

void LogCleaner::begin_passes() {
  while (!wanted_.empty() && static_cast<std::int64_t>(cleaning_.size()) < settings_.threads) {
    begin(wanted_.front());
    wanted_.pop_front();
  }
}

void LogCleaner::begin(const TopicPartition& id) {
  auto inside = running_.enter();
  if (!inside) return;
  cleaning_.insert(id);
  told_.running.set(static_cast<std::int64_t>(cleaning_.size()));
  auto means = settings_.means;
  means.secret = secret_;
  means.rate = &rate_;
  spawn(parts_.environment.control(), clean(*std::move(inside), id, means), "compaction");
}

Task<> LogCleaner::clean(Gate::Pass inside, TopicPartition id, CompactionMeans means) {
  static_cast<void>(inside);  // close() waits for it
  const auto began = now();
  auto& owner = partitions_.owner_of(id.topic, id.partition);
  auto make = [&owner, id, means, stopping = stopping_] {
    return clean_on(owner, id, means, stopping);
  };
  auto cleaning = run_on(owner.shard(), std::move(make));
  const auto done = co_await std::move(cleaning);
  std::optional<std::uint64_t> left;
  if (!done && done.error().code == Errc::io) {
    const auto asked = co_await free_bytes();
    if (asked) left = *asked;
  }
  cleaning_.erase(id);
  told_.running.set(static_cast<std::int64_t>(cleaning_.size()));
  if (done) {
    note(id, *done, now() - began);
  } else {
    note(id, done.error(), left);
  }
  ended_since_ = true;
  ended_.notify_all();
  co_return {};
}

void LogCleaner::note(const TopicPartition& id, const CompactionDone& done, Duration took) {
  waiting_.erase(id);
  uncleanable_.erase(id);
  told_.passes.add();
  told_.last_run.set(parts_.environment.clock().wall().ms / 1000);
  told_.bytes_read.add(done.bytes_read);
  told_.bytes_written.add(done.bytes_written);
  told_.records_removed.add(static_cast<std::uint64_t>(done.records_removed));
  if (done.bytes_after < done.bytes_before) {
    told_.bytes_removed.add(done.bytes_before - done.bytes_after);
  }
  told_.map_percent.set(percent(done.map_used));
  if (done.bytes_before > 0) {
    told_.recopy_percent.set(
        percent(static_cast<double>(done.bytes_after) / static_cast<double>(done.bytes_before)));
  }
  parts_.log.info("compacted a log", {{"partition", to_string(id)},
                                      {"dirty_from", done.from.value},
                                      {"dirty_below", done.cleaned_to.value},
                                      {"bytes_before", done.bytes_before},
                                      {"bytes_after", done.bytes_after},
                                      {"records_removed", done.records_removed},
                                      {"map_full", done.map_was_full ? "yes" : "no"},
                                      {"ms", took / milliseconds(1)}});
}

void LogCleaner::note(const TopicPartition& id, const Error& error,
                      std::optional<std::uint64_t> free_bytes) {
  auto& waiting = waiting_[id];
  if (is_harmless(error.code)) {
    waiting = {.until = now() + settings_.backoff};
    parts_.log.debug("a pass of compaction ended early",
                     {{"partition", to_string(id)}, {"error", to_string(error)}});
    return;
  }
  Duration disk_pause{};
  if (error.code == Errc::io) {
    disk_pause = std::clamp<Duration>(2 * waiting.pause, disk_pause_min, uncleanable_pause);
  }
  const auto pause = error.code == Errc::io ? disk_pause : uncleanable_pause;
  waiting = {.until = now() + pause, .pause = disk_pause, .free_bytes = free_bytes};
  uncleanable_.insert(id);
  parts_.log.error("a log cannot be compacted; it stays as it is, and is tried again",
                   {{"partition", to_string(id)},
                    {"error", to_string(error)},
                    {"again_in_s", pause / std::chrono::seconds(1)}});
}

void LogCleaner::tell(const std::vector<Seen>& seen) {
  std::set<TopicPartition> here;
  std::int64_t uncleanable = 0;
  std::uint64_t uncleanable_bytes = 0;
  std::int64_t dirtiest = 0;
  std::int64_t overdue = 0;
  for (const auto& [id, need, cleaned_to, room] : seen) {
    here.insert(id);
    dirtiest = std::max(dirtiest, percent(need.range.dirty_ratio()));
    overdue = std::max(overdue, need.overdue_ms);
    if (!uncleanable_.contains(id)) continue;
    ++uncleanable;
    uncleanable_bytes += need.range.dirty_bytes;
  }
  // What is not here any more has no past when it comes back.
  std::erase_if(uncleanable_, [&here](const auto& id) { return !here.contains(id); });
  std::erase_if(waiting_, [&here](const auto& one) { return !here.contains(one.first); });
  told_.uncleanable_partitions.set(uncleanable);
  told_.uncleanable_bytes.set(static_cast<std::int64_t>(uncleanable_bytes));
  told_.dirty_percent_max.set(dirtiest);
  told_.overdue_ms_max.set(overdue);
}

Task<> LogCleaner::checkpoint(const std::vector<Seen>& seen) {
  Offsets now;
  std::vector<PartitionOffset> changed;
  for (const auto& one : seen) {
    now.emplace(one.id, one.cleaned_to);
    const auto before = noted_->find(one.id);
    if (before == noted_->end() || before->second != one.cleaned_to) {
      changed.push_back({one.id, one.cleaned_to});
    }
  }
  if (!changed.empty()) {
    auto writing = parts_.storage.checkpoint(CheckpointKind::cleaner, std::move(changed));
    MR_CO_CHECK(co_await std::move(writing));
  }
  noted_ = std::make_shared<const Offsets>(std::move(now));
  co_return {};
}

Task<> LogCleaner::close() {
  *stopping_ = true;
  background_.cancel();
  co_return co_await running_.close();
}

}  // namespace millrace::kernel
