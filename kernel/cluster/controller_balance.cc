// What moves by itself: a share to brokers that have come, and away from those that shall go or are
// gone. What moves where is planned in balance.h; here it is begun, a few partitions at a time.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "kernel/cluster/balance.h"
#include "kernel/cluster/controller_term.h"
#include "kernel/cluster/reassignment.h"
#include "kernel/partition/config_options.h"

namespace millrace::kernel {

namespace {

constexpr Duration look_time_max = std::chrono::hours(1);
constexpr std::int64_t moves_max_fallback = 10;
constexpr std::int64_t replace_after_ms_fallback = 900'000;

}  // namespace

BalanceMetrics::BalanceMetrics(Metrics& metrics)
    : left(metrics.gauge("millrace_balance_moves_left",
                         "Partitions whose replicas are still to be moved by themselves, those "
                         "that move now included; on the controller")),
      moving(metrics.gauge("millrace_balance_moves_in_flight",
                           "Partitions whose replicas move by themselves now; on the controller")),
      paused(metrics.gauge("millrace_balance_paused",
                           "1 where nothing begins to move by itself; on the controller")),
      done(metrics.counter("millrace_balance_moves_total",
                           "Partitions whose replicas have moved by themselves")) {}

BalanceMetrics::~BalanceMetrics() {
  for (auto* gauge : {&left, &moving, &paused}) gauge->set(0);
}

void ControllerTerm::wake_balance(bool look) {
  if (look) balancing_.look = true;
  balancing_.woken = true;
  balancing_.wake.notify_all();
}

Task<> ControllerTerm::balance() {
  auto& now = balancing_;
  while (true) {
    now.woken = false;
    {
      MR_CO_TRY(const auto held, co_await turn());
      MR_CO_CHECK(co_await balance_once());
    }
    while (!now.woken) {
      auto waiting = with_deadline(now.wake.wait(), time_to_next_replacement());
      const auto waited = co_await std::move(waiting);
      if (waited) continue;
      if (waited.error().code != Errc::timed_out) co_return waited.error();
      now.look = true;
      break;
    }
  }
}

Task<> ControllerTerm::balance_once() {
  auto& now = balancing_;
  if (!now.brokers_known) co_return {};
  take_balance_settings();
  if (now.look) MR_CO_CHECK(co_await note_absent());
  if (!now.paused) {
    MR_CO_CHECK(co_await write_replicas(leaders_off_drained()));
    const bool at_end = now.evening && now.plan.empty() && moving_.empty();
    if (now.look || at_end) plan_anew();
    MR_CO_CHECK(co_await write_replicas(moves_given_up()));
    MR_CO_CHECK(co_await write_replicas(next_moves()));
    if (std::exchange(now.has_evened, false)) MR_CO_CHECK(co_await end_evening());
  }
  tell_of_unwanted();
  const auto copying = std::ranges::count_if(
      now.plan, [](const BalanceMove& move) { return !move.getting.empty(); });
  const auto moving = static_cast<std::int64_t>(moving_.size() - now.by_users.size());
  now.metrics.moving.set(moving);
  now.metrics.left.set(copying + moving);
  now.metrics.paused.set(now.paused ? 1 : 0);
  co_return {};
}

void ControllerTerm::take_balance_settings() {
  auto& now = balancing_;
  const auto& enable = *find_broker_option(balance_settings::enable);
  const bool paused = normal_value(enable, setting({}, enable.option.name, "true")) != "true";
  if (paused != now.paused) {
    now.paused = paused;
    now.look = now.even = true;
    if (paused) {
      parts_.log.info("no more replicas begin to move by themselves: that is paused",
                      {{"moving", moving_.size()}, {"left", now.plan.size()}});
    } else {
      parts_.log.info("replicas move by themselves again");
    }
  }
  auto drained = brokers_in(setting({}, balance_settings::drain_brokers, ""));
  if (drained == now.drained) return;
  now.drained = std::move(drained);
  now.look = now.even = true;
}

// ---- who is there, and who shall be ----

// Who has replicas and does not live. Its time goes on from what the controller before has found;
// what a clock has jumped by meanwhile counts, for there is no other that both have.
Task<> ControllerTerm::note_absent() {
  BrokerIds gone;
  for (const auto& [name, topic] : state_.topics) {
    for (const auto& partition : topic->partitions) {
      for (const auto broker : partition.replicas) {
        if (!state_.brokers.contains(broker)) gone.insert(broker);
      }
    }
  }
  auto& since = balancing_.gone_since;
  std::erase_if(since, [&](const auto& entry) { return !gone.contains(entry.first); });
  const auto now = parts_.environment.control().now();
  const auto time = parts_.environment.clock().wall();
  GoneBrokers::Since told;
  for (const auto broker : gone) {
    const auto known = gone_brokers_.since().find(broker);
    const auto left = known == gone_brokers_.since().end() ? time : std::min(known->second, time);
    told.emplace(broker, left);
    since.try_emplace(broker, now - std::chrono::milliseconds(time.ms - left.ms));
  }
  auto stored = co_await gone_brokers_.store(std::move(told));
  if (!stored && is_end(stored.error())) co_return stored.error();
  co_return {};
}

std::optional<Duration> ControllerTerm::replace_after() const {
  const auto ms = number(balance_settings::replace_after_ms, replace_after_ms_fallback);
  if (ms < 0) return std::nullopt;
  const auto longest = std::chrono::duration_cast<std::chrono::milliseconds>(Duration::max() / 4);
  return std::min(std::chrono::milliseconds(ms), longest);
}

Duration ControllerTerm::time_to_next_replacement() const {
  auto next = look_time_max;
  const auto after = replace_after();
  const auto now = parts_.environment.control().now();
  for (const auto& [broker, since] : balancing_.gone_since) {
    if (!after || now - since >= *after) continue;
    next = std::min(next, *after - (now - since));
  }
  return next;
}

BalanceTerms ControllerTerm::balance_terms() const {
  const auto& now = balancing_;
  BalanceTerms terms;
  for (const auto& [id, broker] : state_.brokers) {
    if (now.drained.contains(id)) {
      terms.unwanted.insert(id);
    } else if (!leaving_.contains(id)) {
      terms.willing.insert(id);
    }
  }
  const auto after = replace_after();
  const auto time = parts_.environment.control().now();
  for (const auto& [id, since] : now.gone_since) {
    const bool too_long = after && time - since >= *after;
    if (too_long || now.drained.contains(id)) terms.unwanted.insert(id);
  }
  for (const auto& id : moving_) {
    const auto* state = find(id);
    const auto to = state ? replicas_after(*state) : std::vector<std::int32_t>();
    const bool hopeless = std::ranges::any_of(
        to, [&](std::int32_t broker) { return terms.unwanted.contains(broker); });
    if (!hopeless || now.by_users.contains(id)) terms.fixed.insert(id);
  }
  return terms;
}

// ---- what moves ----

// While somebody is away for a while nothing is made even: it may be back soon with all it had.
void ControllerTerm::plan_anew() {
  auto& now = balancing_;
  now.look = false;
  const auto terms = balance_terms();
  const bool all_there =
      leaving_.empty() && std::ranges::all_of(now.gone_since, [&](const auto& entry) {
        return terms.unwanted.contains(entry.first);
      });
  const bool was_evening = now.evening;
  if (all_there && std::exchange(now.even, false) && is_uneven(state_, terms)) now.evening = true;
  auto plan = plan_balance(state_, terms, now.evening && all_there);
  if (all_there && plan.moves.empty()) now.evening = false;
  const auto ids_of = [](const std::vector<BalanceMove>& moves) {
    std::set<TopicPartition> ids;
    for (const auto& move : moves) ids.insert(move.id);
    return ids;
  };
  const bool is_news = ids_of(plan.moves) != ids_of(now.plan);
  now.plan = std::move(plan.moves);
  now.stuck = std::move(plan.stuck);
  if (is_news) tell_plan();
  now.has_evened = was_evening && !now.evening;
}

// Who is preferred leads, also where that is not new.
Task<> ControllerTerm::end_evening() {
  parts_.log.info("brokers have even shares of replicas and preferred leaders");
  if (setting({}, "auto.leader.rebalance.enable", "true") != "true") co_return {};
  MR_CO_CHECK(co_await write(moves_back(0)));
  co_return {};
}

void ControllerTerm::tell_plan() const {
  std::map<std::int32_t, std::size_t> getting;
  std::size_t reordered = 0;
  for (const auto& move : balancing_.plan) {
    for (const auto broker : move.getting) ++getting[broker];
    if (move.getting.empty()) ++reordered;
  }
  for (const auto& [broker, replicas] : getting) {
    parts_.log.info("a broker gets replicas of others",
                    {{"broker", broker}, {"replicas", replicas}});
  }
  if (reordered > 0) {
    parts_.log.info("partitions get other preferred leaders", {{"partitions", reordered}});
  }
}

// Also those that cannot end now, because somebody is away who may come back, and then they go on;
// but for those that nobody leads, which nobody can end or give up.
std::int64_t ControllerTerm::moves_in_flight() const {
  return std::ranges::count_if(moving_, [this](const TopicPartition& id) {
    const auto* state = find(id);
    return state && state->leader >= 0;
  });
}

bool ControllerTerm::can_begin(const BalanceMove& move) const {
  const auto* state = find(move.id);
  return state && state->leader >= 0 && !balancing_.by_users.contains(move.id) &&
         std::ranges::all_of(move.replicas, [this](std::int32_t broker) {
           return state_.brokers.contains(broker) && !leaving_.contains(broker);
         });
}

// Who is away holds up no others: as many of what has begun here, and cannot end now, as are in the
// way of what could begin.
std::vector<ControllerTerm::PartitionChange> ControllerTerm::moves_given_up() const {
  const auto wanted = std::ranges::count_if(balancing_.plan, [this](const BalanceMove& move) {
    return !move.getting.empty() && !moving_.contains(move.id) && can_begin(move);
  });
  const auto moves_max = number(balance_settings::moves_max, moves_max_fallback);
  const auto room = std::max<std::int64_t>(moves_max - moves_in_flight(), 0);
  std::vector<PartitionChange> changes;
  for (const auto& id : balancing_.begun) {
    if (std::ssize(changes) >= wanted - room) break;
    const auto* state = find(id);
    if (!state || !is_reassigning(*state)) continue;
    const bool held_up = !std::ranges::all_of(replicas_after(*state), [this](std::int32_t broker) {
      return state_.brokers.contains(broker);
    });
    if (!held_up) continue;
    auto before = cancel_reassignment(*state, usable_for(id));
    if (before) changes.push_back({id.topic, id.partition, *std::move(before)});
  }
  return changes;
}

// The end where nothing is copied, and then the preferred leader leads at once.
PartitionState ControllerTerm::moved_by_itself(const BalanceMove& move,
                                               const PartitionState& state) const {
  auto begun = begin_move(move.id, state, move.replicas);
  if (is_reassigning(begun)) return begun;
  auto elected = elect_preferred(begun, usable_for(move.id));
  return elected ? *std::move(elected) : begun;
}

std::vector<ControllerTerm::PartitionChange> ControllerTerm::leaders_off_drained() {
  const auto terms = balance_terms();
  const auto lives = [this](std::int32_t broker) { return state_.brokers.contains(broker); };
  std::vector<PartitionChange> changes;
  if (!std::ranges::any_of(terms.unwanted, lives)) return changes;
  for (const auto& move : plan_leaders_off(state_, terms)) {
    const auto* state = find(move.id);
    if (!state || state->leader < 0) continue;
    changes.push_back({move.id.topic, move.id.partition, moved_by_itself(move, *state)});
  }
  // They lead also what others led before those were gone.
  for (const auto& [name, topic] : state_.topics) {
    for (std::size_t at = 0; at < topic->partitions.size(); ++at) {
      const auto& state = topic->partitions[at];
      if (state.leader < 0 || !terms.unwanted.contains(state.leader)) continue;
      if (terms.unwanted.contains(state.replicas.front())) continue;
      const TopicPartition id{name, static_cast<std::int32_t>(at)};
      auto elected = elect_preferred(state, usable_for(id));
      if (elected) changes.push_back({name, id.partition, *std::move(elected)});
    }
  }
  if (!changes.empty()) {
    parts_.log.info("leaders move away from brokers that are drained",
                    {{"partitions", changes.size()}});
  }
  return changes;
}

std::vector<ControllerTerm::PartitionChange> ControllerTerm::next_moves() {
  auto& now = balancing_;
  const auto moves_max = number(balance_settings::moves_max, moves_max_fallback);
  auto in_flight = moves_in_flight();
  std::vector<PartitionChange> changes;
  std::vector<BalanceMove> left;
  for (auto& move : now.plan) {
    const auto* state = find(move.id);
    if (!state || now.by_users.contains(move.id)) continue;
    const bool counted = moving_.contains(move.id);  // it goes elsewhere now
    const bool room = move.getting.empty() ? left.empty() : counted || in_flight < moves_max;
    if (!can_begin(move) || !room) {
      left.push_back(std::move(move));
      continue;
    }
    auto begun = moved_by_itself(move, *state);
    if (begun == *state) continue;
    if (is_reassigning(begun)) {
      now.begun.insert(move.id);
      if (!counted) ++in_flight;
    }
    changes.push_back({move.id.topic, move.id.partition, std::move(begun)});
  }
  now.plan = std::move(left);
  return changes;
}

// ---- what an operator is told ----

void ControllerTerm::tell_of_unwanted() {
  auto& now = balancing_;
  const auto unwanted = balance_terms().unwanted;
  if (unwanted.empty() && now.told.empty()) return;
  std::map<std::int32_t, std::size_t> has;
  for (const auto& [name, topic] : state_.topics) {
    for (const auto& partition : topic->partitions) {
      for (const auto broker : partition.replicas) ++has[broker];
    }
  }
  std::erase_if(now.told, [&](const auto& entry) {
    const auto [broker, told] = entry;
    if (unwanted.contains(broker)) return false;
    if (state_.brokers.contains(broker)) {
      parts_.log.info("a broker may have replicas again", {{"broker", broker}});
    } else if (told != Unwanted::empty && !has.contains(broker)) {
      tell_of_unwanted(broker, Unwanted::empty, 0, 0);
    }
    return true;
  });
  if (now.paused || unwanted.empty()) return;
  for (const auto broker : unwanted) {
    const auto replicas = has[broker];
    const auto stuck = now.stuck[broker];
    const auto what = replicas == 0 ? Unwanted::empty
                      : stuck > 0   ? Unwanted::stuck
                                    : Unwanted::emptied;
    auto& told = now.told[broker];
    if (told != what) tell_of_unwanted(broker, what, replicas, stuck);
    told = what;
  }
}

void ControllerTerm::tell_of_unwanted(std::int32_t broker, Unwanted what, std::size_t replicas,
                                      std::size_t stuck) const {
  const bool lives = state_.brokers.contains(broker);
  const bool drained = balancing_.drained.contains(broker);
  const auto not_drained =
      static_cast<std::size_t>(std::ranges::count_if(state_.brokers, [this](const auto& entry) {
        return !balancing_.drained.contains(entry.first);
      }));
  if (what == Unwanted::stuck) {
    // Others that are drained get nothing: an operator who counts brokers has to know.
    parts_.log.warning(
        drained ? "a drained broker keeps replicas: too few other brokers are left for them"
                : "a broker that is gone cannot be replaced: too few other brokers are left",
        {{"broker", broker},
         {"replicas", stuck},
         {"others", not_drained},
         {"drained", balancing_.drained.size()}});
  } else if (what == Unwanted::empty) {
    parts_.log.info(lives     ? "a drained broker is empty: it can be stopped"
                    : drained ? "a drained broker that is gone is empty: others have its replicas"
                              : "a broker that is gone is replaced: others have its replicas",
                    {{"broker", broker}});
  } else if (drained) {
    parts_.log.info(lives ? "a broker is drained: its replicas move to others"
                          : "a drained broker is gone: its replicas are made anew on others",
                    {{"broker", broker}, {"replicas", replicas}});
  } else {
    parts_.log.warning("a broker is gone for too long: its replicas are made anew on others",
                       {{"broker", broker}, {"replicas", replicas}});
  }
}

}  // namespace millrace::kernel
