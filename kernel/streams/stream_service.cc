#include "kernel/streams/stream_service.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernel/config/text.h"
#include "kernel/streams/operator_file.h"
#include "kernel/streams/stream_trial.h"
#include "kernel/streams/watchdog.h"

namespace millrace::kernel {

namespace {

constexpr std::string_view of_admin = "admin";

const Duration load_limit = std::chrono::seconds(30);
constexpr Duration follow_again_after = std::chrono::seconds(1);

// All that is wrong in one.
Result<> verdict(const std::vector<Error>& wrong) {
  if (wrong.empty()) return {};
  std::vector<std::string> lines;
  for (const auto& error : wrong) lines.push_back(error.detail);
  return Error{Errc::invalid_argument, joined(lines, "; ")};
}

HostServices services_of(StreamParts& parts) {
  return {parts.environment, parts.log, parts.metrics, parts.trial};
}

}  // namespace

StreamService::StreamService(StreamParts parts, std::vector<PlannedStream> configured)
    : parts_(std::move(parts)),
      configured_(std::move(configured)),
      store_(parts_.coordination),
      log_(parts_.log, "stream") {}

StreamService::~StreamService() = default;

Task<> StreamService::try_configured() {
  std::vector<Error> wrong;
  for (const auto& planned : configured_) {
    auto trying = try_steps(planned, parts_.settings, services_of(parts_));
    MR_CO_TRY(auto of_one, co_await std::move(trying));
    std::ranges::move(of_one, std::back_inserter(wrong));
  }
  co_return verdict(wrong);
}

Task<> StreamService::open() {
  MR_CO_TRY(auto stored, co_await store_.read());
  auto make = [this, stored = std::move(stored)] { return start_all(stored); };
  MR_CO_CHECK(co_await run_on(home(), std::move(make)));
  for (const auto prefix : {StreamStore::specs_prefix, StreamStore::stopped_prefix}) {
    spawn(parts_.environment.control(), follow(std::string(prefix)), "streams", &scope_);
  }
  co_return {};
}

Task<> StreamService::close() {
  scope_.cancel();
  MR_CO_CHECK(co_await following_.close());
  auto make = [this] { return close_all(); };
  co_return co_await run_on(home(), std::move(make));
}

// Nobody is answered from half of them.
Task<> StreamService::start_all(StoredStreams stored) {
  for (const auto& planned : configured_) {
    const auto& name = planned.spec.name;
    auto& runner = streams_[name];
    runner = std::make_unique<StreamRunner>(parts_, planned);
    if (stored.stopped.contains(name)) {
      log_.info("the stream was stopped, and stays so", {{"stream", name}});
    } else {
      runner->start();
    }
  }
  for (auto& spec : stored.specs) {
    if (const auto found = streams_.find(spec.name); found != streams_.end()) {
      log_.warning(
          "a stream was declared over the admin API and is in the configuration, which wins",
          {{"stream", spec.name}, {"declared_in", found->second->declared_in()}});
      continue;
    }
    const bool stopped = stored.stopped.contains(spec.name);
    MR_CO_CHECK(co_await start_stored(std::move(spec), stopped));
  }
  open_ = true;
  co_return {};
}

// What another broker was told counts here too.
Task<> StreamService::follow(std::string prefix) {
  MR_CO_TRY(const auto pass, following_.enter());
  Seen seen;
  CancelScope whole;  // what has begun is brought to its end
  while (true) {
    auto changed = co_await parts_.coordination.next_change(prefix, seen);
    if (changed) {
      auto make = [this] { return follow_stored(); };
      auto following = run_on(home(), std::move(make)).within(whole);
      const auto followed = co_await std::move(following);
      seen = followed ? *changed : Seen{};
      if (followed) continue;
    }
    if (!changed && changed.error().code == Errc::closed) co_return {};
    MR_CO_CHECK(co_await sleep(follow_again_after));
  }
}

Task<> StreamService::follow_stored() {
  MR_CO_TRY(const auto held, co_await changes_.lock());
  if (!open_) co_return {};
  // A coordination that is away may not answer for long: close() does not wait for it.
  auto read = [this] { return store_.read().within(scope_); };
  MR_CO_TRY(auto stored, co_await on_control(std::move(read)));
  std::vector<std::string> gone;
  for (const auto& [name, runner] : streams_) {
    if (runner->declared_in() != of_admin) continue;
    if (std::ranges::find(stored.specs, name, &StreamSpec::name) == stored.specs.end()) {
      gone.push_back(name);
    }
  }
  for (const auto& name : gone) {
    log_.info("the stream was removed at another broker", {{"stream", name}});
    MR_CO_CHECK(co_await streams_.find(name)->second->close());
    streams_.erase(name);
  }
  MR_CO_CHECK(co_await follow_stopped(stored));
  for (auto& spec : stored.specs) {
    if (streams_.contains(spec.name)) continue;
    log_.info("the stream was declared at another broker", {{"stream", spec.name}});
    const bool stopped = stored.stopped.contains(spec.name);
    MR_CO_CHECK(co_await start_stored(std::move(spec), stopped));
  }
  co_return {};
}

// One that has failed here stays so until it is started here.
Task<> StreamService::follow_stopped(const StoredStreams& stored) {
  for (const auto& [name, runner] : streams_) {
    const bool stopped = stored.stopped.contains(name);
    if (stopped == runner->is_stopped() || !runner->is_planned()) continue;
    if (stopped) {
      MR_CO_CHECK(co_await runner->stop());
    } else {
      runner->start();
    }
  }
  co_return {};
}

// A stream whose operators are not there any more stays in view.
Task<> StreamService::start_stored(StreamSpec spec, bool stopped) {
  auto planning = plan(spec);
  auto planned = co_await std::move(planning);
  auto& runner = streams_[spec.name];
  if (planned) {
    runner = std::make_unique<StreamRunner>(parts_, *std::move(planned));
    if (!stopped) runner->start();
    co_return {};
  }
  runner = std::make_unique<StreamRunner>(
      parts_, PlannedStream{std::move(spec), {}, std::string(of_admin)});
  if (!stopped) runner->refuse(planned.error().detail);
  co_return {};
}

// As declared over the admin API. A file that has taken an operator's place lies with each broker.
Task<PlannedStream> StreamService::plan(StreamSpec spec) {
  for (auto& step : spec.steps) {
    if (!step.file.empty()) step.file = own_copy(step.file, parts_.data);
  }
  auto work = [spec = std::move(spec), files = parts_.files, trial = parts_.trial] {
    return plan_stream(spec, files, trial);
  };
  auto planning = run_watched(parts_.environment, load_limit, std::move(work));
  MR_CO_TRY(auto planned, co_await std::move(planning));
  planned.declared_in = of_admin;
  co_return std::move(planned);
}

// In the place of one that could not be planned.
Task<StreamRunner*> StreamService::plan_again(StreamSpec spec) {
  const auto name = spec.name;
  auto planning = plan(std::move(spec));
  MR_CO_TRY(auto planned, co_await std::move(planning));
  auto& runner = streams_.find(name)->second;
  MR_CO_CHECK(co_await runner->close());
  runner = std::make_unique<StreamRunner>(parts_, std::move(planned));
  co_return runner.get();
}

Task<> StreamService::close_all() {
  open_ = false;
  MR_CO_TRY(const auto held, co_await changes_.lock());
  std::vector<Pending<>> closing;
  for (const auto& [name, runner] : streams_) {
    closing.push_back(millrace::start(home(), runner->close()));
  }
  Result<> first_failure;
  for (auto& one : closing) {
    auto closed = co_await std::move(one);
    if (!closed && first_failure) first_failure = std::move(closed);
  }
  streams_.clear();
  co_return first_failure;
}

Result<StreamRunner*> StreamService::find(const std::string& name) {
  if (!open_) return Error{Errc::closed, "the broker is starting or stopping"};
  const auto found = streams_.find(name);
  if (found != streams_.end()) return found->second.get();
  if (name.empty()) return Error{Errc::not_found, "the name of the stream is empty"};
  std::vector<std::string> names;
  for (const auto& [known, runner] : streams_) names.push_back(known);
  return Error{Errc::not_found, concat("there is no stream ", name, nearest_hint(name, names))};
}

Result<StreamRunner*> StreamService::find_own(const std::string& name, std::string_view what) {
  MR_TRY(auto* runner, find(name));
  if (runner->declared_in() == of_admin) return runner;
  return Error{Errc::conflict, concat("stream ", name, " is declared in ", runner->declared_in(),
                                      ": ", what, " it there")};
}

Task<std::vector<StreamFact>> StreamService::list() {
  auto make = [this] { return list_here(); };
  co_return co_await run_on(home(), std::move(make));
}
Task<StreamFact> StreamService::describe(std::string name) {
  auto make = [this, name = std::move(name)] { return describe_here(name); };
  co_return co_await run_on(home(), std::move(make));
}
Task<> StreamService::create(StreamSpec spec) {
  auto make = [this, spec = std::move(spec)] { return create_here(spec); };
  co_return co_await run_on(home(), std::move(make));
}
Task<> StreamService::remove(std::string name) {
  auto make = [this, name = std::move(name)] { return remove_here(name, false); };
  co_return co_await run_on(home(), std::move(make));
}
Task<> StreamService::remove_but_state(std::string name) {
  auto make = [this, name = std::move(name)] { return remove_here(name, true); };
  co_return co_await run_on(home(), std::move(make));
}
Task<> StreamService::stop(std::string name) {
  auto make = [this, name = std::move(name)] { return stop_here(name); };
  co_return co_await run_on(home(), std::move(make));
}
Task<> StreamService::start(std::string name) {
  auto make = [this, name = std::move(name)] { return start_here(name, false); };
  co_return co_await run_on(home(), std::move(make));
}
Task<> StreamService::start_behind_failed(std::string name) {
  auto make = [this, name = std::move(name)] { return start_here(name, true); };
  co_return co_await run_on(home(), std::move(make));
}
Task<> StreamService::replace(std::string name, std::string step, std::string file) {
  MR_CO_CHECK(co_await replace_unremembered(name, std::move(step), std::move(file)));
  co_return co_await remember(std::move(name));
}
Task<> StreamService::replace_unremembered(std::string name, std::string step, std::string file) {
  auto make = [this, name = std::move(name), step = std::move(step), file = std::move(file)] {
    return replace_here(name, step, file);
  };
  co_return co_await run_on(home(), std::move(make));
}
Task<> StreamService::remember(std::string name) {
  auto make = [this, name = std::move(name)] { return remember_here(name); };
  co_return co_await run_on(home(), std::move(make));
}

Task<std::vector<StreamFact>> StreamService::list_here() {
  std::vector<StreamFact> facts;
  for (const auto& [name, runner] : streams_) facts.push_back(runner->fact());
  co_return std::move(facts);
}

Task<StreamFact> StreamService::describe_here(std::string name) {
  MR_CO_TRY(const auto* runner, find(name));
  co_return runner->fact();
}

Task<> StreamService::create_here(StreamSpec spec) {
  MR_CO_TRY(const auto held, co_await changes_.lock());
  if (!open_) co_return Error{Errc::closed, "the broker is starting or stopping"};
  if (streams_.contains(spec.name)) {
    co_return Error{Errc::conflict, concat("there is a stream ", spec.name, " already")};
  }
  for (auto& step : spec.steps) step.file.clear();
  auto planning = plan(spec);
  MR_CO_TRY(auto planned, co_await std::move(planning));
  auto trying = try_steps(planned, parts_.settings, services_of(parts_));
  MR_CO_TRY(const auto wrong, co_await std::move(trying));
  MR_CO_CHECK(verdict(wrong));
  // What was stopped under this name before is another stream.
  auto forget = [this, name = spec.name] { return store_.set_stopped(name, false); };
  MR_CO_CHECK(co_await on_control(std::move(forget)));
  auto put = [this, wanted = planned.spec] { return store_.put(wanted, true); };
  MR_CO_CHECK(co_await on_control(std::move(put)));
  auto& runner = streams_[planned.spec.name];
  runner = std::make_unique<StreamRunner>(parts_, std::move(planned));
  runner->start();
  co_return {};
}

// Stopped first, and remembered so: what ends between two steps is there to be removed again.
Task<> StreamService::remove_here(std::string name, bool keep_state) {
  MR_CO_TRY(const auto held, co_await changes_.lock());
  MR_CO_TRY(auto* runner, find_own(name, "remove"));
  if (!keep_state) {
    auto stop = [this, name] { return store_.set_stopped(name, true); };
    MR_CO_CHECK(co_await on_control(std::move(stop)));
    MR_CO_CHECK(co_await runner->stop());
    MR_CO_CHECK(co_await runner->remove_state());
  }
  auto forget = [this, name] { return store_.remove(name); };
  MR_CO_CHECK(co_await on_control(std::move(forget)));
  MR_CO_CHECK(co_await runner->close());
  streams_.erase(name);
  co_return {};
}

Task<> StreamService::stop_here(std::string name) {
  MR_CO_TRY(const auto held, co_await changes_.lock());
  MR_CO_TRY(auto* runner, find(name));
  auto keep = [this, name] { return store_.set_stopped(name, true); };
  MR_CO_CHECK(co_await on_control(std::move(keep)));
  co_return co_await runner->stop();
}

Task<> StreamService::start_here(std::string name, bool skip) {
  MR_CO_TRY(const auto held, co_await changes_.lock());
  MR_CO_TRY(auto* runner, find(name));
  if (skip) MR_CO_CHECK(runner->skip_failed());
  if (!runner->is_planned()) {
    auto planning = plan_again(runner->spec());
    MR_CO_TRY(runner, co_await std::move(planning));
  }
  auto keep = [this, name] { return store_.set_stopped(name, false); };
  MR_CO_CHECK(co_await on_control(std::move(keep)));
  runner->start();
  co_return {};
}

Task<> StreamService::replace_here(std::string name, std::string step, std::string file) {
  // One that was declared a moment ago, at another broker, is not followed yet.
  if (!streams_.contains(name)) MR_CO_CHECK(co_await follow_stored());
  MR_CO_TRY(const auto held, co_await changes_.lock());
  MR_CO_TRY(auto* runner, find(name));
  const auto& steps = runner->spec().steps;
  const auto found = std::ranges::find(steps, step, &StreamStep::name);
  if (found == steps.end()) {
    std::vector<std::string> names;
    for (const auto& one : steps) names.push_back(one.name);
    co_return Error{Errc::not_found,
                    concat("stream ", name, " has no step ", step, nearest_hint(step, names),
                           "; steps are ", joined(names))};
  }
  const auto step_at = static_cast<std::size_t>(found - steps.begin());
  auto work = [file, data = parts_.data, &files = parts_.environment.files(),
               trial = parts_.trial] { return load_private_copy(files, file, data, trial); };
  auto loading = run_watched(parts_.environment, load_limit, std::move(work));
  MR_CO_TRY(auto copy, co_await std::move(loading));
  const auto path = copy.library.path;
  auto replacing = put_in_place(*runner, step_at, copy.library);
  auto replaced = co_await std::move(replacing);
  if (!replaced) {
    auto forget = [copy, &files = parts_.environment.files()]() -> Result<> {
      forget_private_copy(files, copy);
      return {};
    };
    auto forgetting = on_worker(parts_.environment.workers(), std::move(forget));
    static_cast<void>(co_await std::move(forgetting));
    co_return about_original(std::move(replaced).error(), path, file);
  }
  runner = streams_.find(name)->second.get();
  log_.info("an operator was replaced",
            {{"stream", name}, {"step", step}, {"file", file}, {"path", path}});
  co_return {};
}

Task<> StreamService::remember_here(std::string name) {
  MR_CO_TRY(const auto held, co_await changes_.lock());
  MR_CO_TRY(const auto* runner, find(name));
  if (runner->declared_in() != of_admin) {
    log_.info("the configuration names the operator of the next start",
              {{"stream", name}, {"declared_in", runner->declared_in()}});
    co_return {};
  }
  auto put = [this, spec = runner->spec()] { return store_.put(spec, true); };
  co_return co_await on_control(std::move(put));
}

Task<> StreamService::put_in_place(StreamRunner& runner, std::size_t step_at,
                                   PluginLibrary library) {
  const auto path = library.path;
  if (runner.is_planned()) co_return co_await runner.replace(step_at, std::move(library), path);
  const bool stopped = runner.is_stopped();
  auto spec = runner.spec();
  spec.steps[step_at].file = path;
  auto planning = plan_again(std::move(spec));
  MR_CO_TRY(auto* planned, co_await std::move(planning));
  if (!stopped) planned->start();
  co_return {};
}

}  // namespace millrace::kernel
