// How a task comes to its state: made anew, then what its snapshot and its changelog say.
#include <algorithm>
#include <exception>
#include <ranges>
#include <utility>

#include "kernel/config/stream_check.h"
#include "kernel/config/text.h"
#include "kernel/streams/stream_task.h"
#include "kernel/streams/stream_topology.h"
#include "kernel/streams/watchdog.h"

namespace millrace::kernel {

namespace {

constexpr std::uint64_t replay_step_bytes = 8UL << 20;

ErrorPolicy policy_of(std::string_view name) {
  if (name == "skip") return ErrorPolicy::skip;
  return name == "dead-letter" ? ErrorPolicy::dead_letter : ErrorPolicy::stop;
}

/// What one step of a replay has found.
struct Replayed {
  Offset next;
  std::uint64_t records = 0;
};

// State that does not fit into memory throws.
template <class F>
auto within_memory(F body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& thrown) {
    return Error{Errc::too_large, thrown.what()};
  }
}

}  // namespace

Task<> StreamTask::prepare() {
  access_ = std::make_unique<StreamAccess>(parts_, run_->spec.name);
  const auto topic = changelog_of(run_->spec.name);
  changelog_ = parts_.partitions.here().find(topic, partition_);
  if (!changelog_) {
    co_return Error{Errc::not_found, concat(topic, "-", partition_, " is not open here")};
  }
  MR_CO_CHECK(check_led());
  co_return co_await make_state();
}

Task<> StreamTask::make_state() {
  auto work = [run = run_, partition = partition_, &clock = parts_.environment.clock(),
               codecs = parts_.partitions.here().codecs(),
               skip = skip_]() -> Result<std::shared_ptr<TurnState>> {
    std::vector<OperatorChain::Step> steps;
    for (std::size_t at = 0; at < run->plugins.size(); ++at) {
      const auto& plugin = run->plugins[at];
      MR_TRY(auto object, plugin->make());
      steps.push_back({run->spec.steps[at].name, {plugin, std::move(object)}});
    }
    TurnSettings settings{
        .stream = run->spec.name,
        .check_output = [run](const std::string& topic) { return check_output(run->spec, topic); },
        .partition = partition,
        .on_error = policy_of(run->spec.on_error),
        .dead_letter = run->spec.dead_letter,
        .skip = skip};
    return std::make_shared<TurnState>(std::move(settings), std::move(steps), run->spec.sink,
                                       run->memory, clock, codecs);
  };
  auto making = run_watched(parts_.environment, limit_, std::move(work));
  auto made = co_await std::move(making);
  if (!made) {
    failure_ = StreamFailure{{}, {}, {}, std::move(made).error()};
    co_return Error{Errc::internal, "an operator could not be made"};
  }
  state_ = *std::move(made);
  auto asking = parts_.broker.init_producer_id(access_->session(), {});
  MR_CO_TRY(const auto producer, co_await std::move(asking));
  if (producer.error != ErrorCode::none) {
    co_return Error{Errc::io, concat("no producer id: ", name_of(producer.error))};
  }
  state_->outputs().set_producer(producer.producer_id, producer.producer_epoch);
  for (const auto& topic : {run_->spec.sink, run_->spec.dead_letter}) {
    if (!topic.empty()) MR_CO_CHECK(co_await learn(topic));
  }
  learned_at_ = shard_.now();
  co_return {};
}

Task<> StreamTask::restore() {
  const auto begun = shard_.now();
  MR_CO_TRY(auto next, co_await restore_snapshot());
  std::uint64_t records = 0;
  while (!stopping_) {
    MR_CO_TRY(auto batches, co_await changelog_->read_own(next, replay_step_bytes));
    if (batches.empty()) break;
    auto work = [state = state_, batches = std::move(batches), next]() mutable {
      return within_memory([&]() -> Result<Replayed> {
        MR_TRY(const auto count, state->replay(batches, next));
        return Replayed{next, count};
      });
    };
    auto replaying = on_worker(parts_.environment.workers(), std::move(work));
    auto replayed = co_await std::move(replaying);
    if (!replayed) {
      failure_ = StreamFailure{
          {}, {changelog_of(run_->spec.name), partition_}, {}, std::move(replayed).error()};
      co_return {};
    }
    next = replayed->next;
    records += replayed->records;
  }
  if (stopping_) co_return {};
  committed_ = next;
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(shard_.now() - begun).count();
  status_->change([&](StreamTaskFact& fact) {
    fact.restore_ms = took;
    fact.state_restored_records = records;
    fact.state_bytes = state_->chain().state_bytes();
  });
  log_.debug("a task has its state back", {{"partition", partition_},
                                           {"records", records},
                                           {"state_bytes", state_->chain().state_bytes()},
                                           {"ms", took}});
  MR_CO_CHECK(co_await find_beginnings());
  co_return co_await find_ends();
}

// Where the changelog is to be read from. A snapshot that is not what it claims to be is passed
// over: the changelog has everything.
Task<Offset> StreamTask::restore_snapshot() {
  const auto offsets = changelog_->offsets();
  MR_CO_TRY(const auto snapshots, co_await changelog_->aggregate_snapshots());
  for (const auto& entry : snapshots | std::views::reverse) {
    if (entry.at > offsets.end || entry.at < offsets.log_start) continue;
    auto work = [state = state_, entry] {
      return within_memory([&] { return state->restore(entry.value, entry.at); });
    };
    auto restoring = on_worker(parts_.environment.workers(), std::move(work));
    const auto restored = co_await std::move(restoring);
    if (restored) co_return entry.at;
    log_.warning("a snapshot of state is damaged; older state and the changelog are read instead",
                 {{"partition", partition_},
                  {"offset", entry.at.value},
                  {"error", to_string(restored.error())}});
    static_cast<void>(co_await release_state());
    MR_CO_CHECK(co_await make_state());
  }
  co_return offsets.log_start;
}

Task<> StreamTask::find_beginnings() {
  bool found = false;
  for (const auto& source : sources_) {
    MR_CO_TRY(const bool begins, co_await find_beginning(source));
    found = begins || found;
  }
  if (!found) co_return {};
  // "latest" shall mean the same after a crash.
  TurnInput nothing{.sources = {}, .now = parts_.environment.clock().wall()};
  co_return co_await process(std::move(nothing));
}

// Whether there was no position, or one of another topic that had this name.
Task<bool> StreamTask::find_beginning(const StreamSource& source) {
  const auto& positions = state_->positions();
  const auto known = positions.find(source.topic);
  if (known != positions.end() && known->second.topic_id == source.id) co_return false;
  if (known != positions.end() && known->second.topic_id.is_none()) {
    state_->set_position(source.topic, {known->second.next, source.id});
    co_return true;
  }
  const auto spec = run_->spec.from == "latest" ? OffsetSpec::latest : OffsetSpec::earliest;
  MR_CO_TRY(const auto offset, co_await find_offset(source.topic, spec));
  if (known != positions.end() && partition_ == 0) {
    log_.warning("a source was deleted and made anew; the stream begins anew with it",
                 {{"source", source.topic},
                  {"id", to_string(source.id)},
                  {"id_before", to_string(known->second.topic_id)},
                  {"from", run_->spec.from}});
  }
  state_->set_position(source.topic, {offset, source.id});
  co_return true;
}

// So that the lag is known before the first record comes.
Task<> StreamTask::find_ends() {
  if (!state_) co_return {};
  for (const auto& [topic, id] : sources_) {
    MR_CO_TRY(ends_[topic], co_await find_offset(topic, OffsetSpec::latest));
  }
  std::vector<std::uint64_t> entries;
  for (std::size_t at = 0; at < state_->chain().size(); ++at) {
    entries.push_back(state_->chain().state_of(at).size());
  }
  status_->set_state_entries(std::move(entries));
  tell_positions(state_->positions());
  co_return {};
}

Task<Offset> StreamTask::find_offset(std::string topic, OffsetSpec spec) {
  PartitionOffsetQuery query{.partition = partition_,
                             .current_leader_epoch = {},
                             .timestamp = static_cast<std::int64_t>(spec)};
  auto asking = access_->list_offset(topic, query);
  MR_CO_TRY(const auto found, co_await std::move(asking));
  if (found.error != ErrorCode::none) {
    co_return Error{Errc::io,
                    concat("no offset of ", topic, "-", partition_, ": ", name_of(found.error))};
  }
  co_return found.offset;
}

}  // namespace millrace::kernel
