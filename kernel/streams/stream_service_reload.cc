// The part of StreamService for a configuration that is read again.
#include <algorithm>
#include <utility>

#include "kernel/config/text.h"
#include "kernel/streams/stream_service.h"
#include "kernel/streams/stream_trial.h"

namespace millrace::kernel {

using Kind = StreamChange::Kind;

Task<std::vector<StreamChange>> StreamService::reconfigure(std::vector<PlannedStream> wanted) {
  auto make = [this, wanted = std::move(wanted)] { return reconfigure_here(wanted); };
  auto changing = run_on(home(), std::move(make));
  MR_CO_TRY(auto changes, co_await std::move(changing));
  // One that was declared over the admin API under that name counts again.
  if (std::ranges::find(changes, Kind::ended, &StreamChange::kind) != changes.end()) {
    auto follow = [this] { return follow_stored(); };
    auto following = run_on(home(), std::move(follow));
    MR_CO_CHECK(co_await std::move(following));
  }
  co_return std::move(changes);
}

Task<> StreamService::try_to_reconfigure(std::vector<PlannedStream> wanted) {
  auto make = [this, wanted = std::move(wanted)] { return try_to_reconfigure_here(wanted); };
  auto trying = run_on(home(), std::move(make));
  co_return co_await std::move(trying);
}

Task<> StreamService::try_to_reconfigure_here(std::vector<PlannedStream> wanted) {
  MR_CO_TRY(const auto held, co_await changes_.lock());
  if (!open_) co_return Error{Errc::closed, "the broker is starting or stopping"};
  const auto changes = changes_between(configured_, wanted);
  auto trying = try_changes(changes, wanted);
  co_return co_await std::move(trying);
}

Task<std::vector<StreamChange>> StreamService::reconfigure_here(std::vector<PlannedStream> wanted) {
  MR_CO_TRY(const auto held, co_await changes_.lock());
  if (!open_) co_return Error{Errc::closed, "the broker is starting or stopping"};
  auto changes = changes_between(configured_, wanted);
  if (changes.empty()) co_return std::move(changes);
  auto trying = try_changes(changes, wanted);
  MR_CO_CHECK(co_await std::move(trying));
  auto read = [this] { return store_.read().within(scope_); };
  MR_CO_TRY(const auto stored, co_await on_control(std::move(read)));
  for (auto& change : changes) {
    const auto* planned = find_stream(wanted, change.stream);
    auto making = make_change(change, planned, stored);
    change.done = co_await std::move(making);
    if (!change.done && change.done.error().code == Errc::cancelled) {
      co_return change.done.error();
    }
    if (!change.done) continue;  // and tried again by the next reload
    std::erase_if(configured_, [&change](const PlannedStream& stream) {
      return stream.spec.name == change.stream;
    });
    if (planned != nullptr) configured_.push_back(*planned);
  }
  co_return std::move(changes);
}

// As a start does before anything is started: all that is wrong.
Task<> StreamService::try_changes(const std::vector<StreamChange>& changes,
                                  const std::vector<PlannedStream>& wanted) {
  std::vector<std::string> wrong;
  for (const auto& change : changes) {
    if (change.kind == Kind::ended) continue;
    const HostServices services{parts_.environment, parts_.log, parts_.metrics, parts_.trial};
    auto trying = try_steps(*find_stream(wanted, change.stream), parts_.settings, services);
    MR_CO_TRY(const auto of_one, co_await std::move(trying));
    for (const auto& error : of_one) wrong.push_back(error.detail);
  }
  if (wrong.empty()) co_return {};
  co_return Error{Errc::invalid_argument, joined(wrong, "; ")};
}

Task<> StreamService::make_change(const StreamChange& change, const PlannedStream* planned,
                                  const StoredStreams& stored) {
  if (change.kind == Kind::replaced) {
    for (const auto at : change.steps) {
      MR_CO_TRY(auto* runner, find(change.stream));
      auto replacing = put_in_place(*runner, at, planned->steps[at].library);
      MR_CO_CHECK(co_await std::move(replacing));
    }
    co_return {};
  }
  if (const auto found = streams_.find(change.stream); found != streams_.end()) {
    if (change.kind == Kind::started) {
      log_.warning(
          "a stream was declared over the admin API and is in the configuration now, which wins",
          {{"stream", change.stream}});
    }
    MR_CO_CHECK(co_await found->second->close());
    streams_.erase(found);
  }
  if (planned == nullptr) co_return {};
  auto& runner = streams_[change.stream];
  runner = std::make_unique<StreamRunner>(parts_, *planned);
  if (stored.stopped.contains(change.stream)) {
    log_.info("the stream was stopped, and stays so", {{"stream", change.stream}});
  } else {
    runner->start();
  }
  co_return {};
}

}  // namespace millrace::kernel
