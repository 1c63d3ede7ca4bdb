#include "monitor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace millrace::consumer_groups {
namespace {

using Type = Membership::Type;

/// Whoever is refused comes again, and again.
constexpr Duration quiet_after_a_line = std::chrono::seconds(10);

constexpr std::string_view empty_state = "Empty";
constexpr std::string_view settled_state = "Stable";
constexpr std::array classic_states = {empty_state, std::string_view("PreparingRebalance"),
                                       std::string_view("CompletingRebalance"), settled_state};
constexpr std::array consumer_states = {empty_state, std::string_view("Assigning"),
                                        std::string_view("Reconciling"), settled_state};

/// Groups that have offsets alone are shown as classic ones.
Type type_of(const Group& group) { return group.members ? group.members->type() : Type::classic; }

}  // namespace

Monitor::OfProtocol Monitor::register_for(Metrics& metrics, Type type) {
  const bool classic = type == Type::classic;
  const std::string protocol = classic ? "classic" : "consumer";
  const MetricLabels labels{{"protocol", protocol}};
  OfProtocol made{.groups = {},
                  .members = metrics.gauge("millrace_group_members", "Members of groups", labels),
                  .rebalances = metrics.counter("millrace_group_rebalances_total",
                                                "Rebalances that have begun", labels),
                  .rebalance_seconds = metrics.histogram(
                      "millrace_group_rebalance_seconds",
                      "Time from the begin of a rebalance until all have settled", labels)};
  for (const auto state : classic ? classic_states : consumer_states) {
    made.groups.emplace(state,
                        &metrics.gauge("millrace_groups", "Groups by state",
                                       {{"protocol", protocol}, {"state", std::string(state)}}));
  }
  return made;
}

Monitor::Monitor(Log log, Metrics& metrics)
    : log_(std::move(log)),
      classic_(register_for(metrics, Type::classic)),
      consumer_(register_for(metrics, Type::consumer)),
      commits_(metrics.counter("millrace_group_commits_total",
                               "Offsets committed, one for each partition")) {}

void Monitor::add(const Counted& counted, std::int64_t by) {
  auto& gauges = counted.type == Type::classic ? classic_ : consumer_;
  gauges.members.add(by * static_cast<std::int64_t>(counted.members));
  const auto found = gauges.groups.find(counted.state);
  if (found != gauges.groups.end()) found->second->add(by);
}

void Monitor::count(Group& group, Timestamp at) {
  auto& counted = group.counted;
  const auto type = type_of(group);
  const auto state = group.members ? group.members->state() : empty_state;
  const auto members = group.members ? group.members->size() : 0;
  if (counted.state == state && counted.members == members && counted.type == type) return;
  add(counted, -1);
  counted.type = type;
  counted.state = state;
  counted.members = members;
  add(counted, 1);

  auto& rebalances = type == Type::classic ? classic_ : consumer_;
  if (state != settled_state && state != empty_state) {
    if (counted.rebalancing_since) return;
    counted.rebalancing_since = at;
    return rebalances.rebalances.add();
  }
  const auto began = std::exchange(counted.rebalancing_since, std::nullopt);
  if (!began || state == empty_state) return;
  rebalances.rebalance_seconds.observe(
      std::chrono::milliseconds(std::max<std::int64_t>(at.ms - began->ms, 0)));
}

void Monitor::forget(Group& group) {
  add(group.counted, -1);
  group.counted = {};
}

void Monitor::too_large(std::string_view group, std::string_view why, std::size_t bytes,
                        std::size_t bytes_max, MonoTime now) {
  auto quiet_until = quiet_until_.load();
  if (now < quiet_until ||
      !quiet_until_.compare_exchange_strong(quiet_until, now + quiet_after_a_line)) {
    not_told_.fetch_add(1);
    return;
  }
  log_.warning("a member is refused; raise message.max.bytes if it is meant to be so large",
               {{"group", group},
                {"reason", why},
                {"bytes", bytes},
                {"bytes_max", bytes_max},
                {"not_told", not_told_.exchange(0)}});
}

}  // namespace millrace::consumer_groups
