// millrace cluster status|balance|drain: who has what, what moves by itself, and a broker that
// shall be emptied.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/configs.h>

#include "kernel/cli/cluster_verbs.h"
#include "kernel/cli/cluster_view.h"
#include "kernel/cli/output.h"
#include "kernel/cli/usage.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

constexpr Duration pause_between_looks = std::chrono::milliseconds(500);
constexpr int looks_max = 20;
constexpr int looks_until_stuck = 4;

constexpr auto set = static_cast<std::int8_t>(ConfigOperation::set);
constexpr auto append = static_cast<std::int8_t>(ConfigOperation::append);
constexpr auto subtract = static_cast<std::int8_t>(ConfigOperation::subtract);

// Apache Kafka's brokers have no balancer.
const char* balance_text(const ClusterView& view) {
  if (view.moves_max.empty()) return "none";
  return view.balancing ? "on" : "paused";
}

const char* state_text(const BrokerShare& share) {
  if (!share.lives) return share.drained ? "down, drained" : "down";
  if (!share.drained) return "up";
  return share.replicas == 0 ? "empty" : "draining";
}

Tone tone_of(const BrokerShare& share) {
  if (!share.lives) return Tone::bad;
  return share.drained ? Tone::warning : Tone::plain;
}

std::size_t copying(const BalancePlan& plan) {
  return static_cast<std::size_t>(std::ranges::count_if(
      plan.moves, [](const BalanceMove& move) { return !move.getting.empty(); }));
}

// What is the matter with partitions.
struct Health {
  std::size_t partitions = 0;
  std::size_t under_replicated = 0;
  std::size_t offline = 0;
};

// Replicas on their way are not missed yet.
Health health_of(const ClusterView& view) {
  Health health;
  for (const auto& [name, topic] : view.state.topics) {
    for (const auto& one : topic->partitions) {
      ++health.partitions;
      if (one.leader < 0) ++health.offline;
      const auto missing = [&](std::int32_t broker) {
        return !std::ranges::count(one.in_sync, broker) && !std::ranges::count(one.adding, broker);
      };
      if (std::ranges::any_of(one.replicas, missing)) ++health.under_replicated;
    }
  }
  return health;
}

void print_moves(const ClusterView& view, const std::vector<TopicPartition>& moving) {
  if (moving.empty()) return;
  std::cout << '\n';
  Table table({"MOVING", "FROM -> TO"});
  for (const auto& id : moving) table.add({to_string(id), move_text(view.partition(id))});
  table.print();
}

json::array objects_of(const ClusterView& view, const std::vector<TopicPartition>& moving) {
  json::array moves;
  for (const auto& id : moving) moves.emplace_back(move_object(id, view.partition(id)));
  return moves;
}

// ---- status ----

json::object broker_object(const ClusterView& view, std::int32_t id, const BrokerShare& share) {
  const auto address = view.addresses.find(id);
  const auto broker = view.state.brokers.find(id);
  return {{"id", id},
          {"address", address == view.addresses.end() ? "" : to_string(address->second)},
          {"rack", broker == view.state.brokers.end() ? "" : broker->second.rack},
          {"controller", id == view.state.controller_id},
          {"live", share.lives},
          {"drained", share.drained},
          {"replicas", share.replicas},
          {"leaders", share.leads},
          {"coming", share.coming},
          {"going", share.going}};
}

Task<> status(Environment& environment, const Context& context) {
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  MR_CO_TRY(const auto view, co_await view_of(*cluster));
  const auto moving = view.moving();
  const auto left = copying(view.left());
  const auto health = health_of(view);
  const auto shares = view.shares();
  if (context.output == OutputFormat::json) {
    json::array brokers;
    for (const auto& [id, share] : shares) brokers.emplace_back(broker_object(view, id, share));
    print_json(json::object{{"cluster_id", view.state.cluster_id},
                            {"controller_id", view.state.controller_id},
                            {"brokers", std::move(brokers)},
                            {"partitions", health.partitions},
                            {"under_replicated", health.under_replicated},
                            {"offline", health.offline},
                            {"balance", balance_text(view)},
                            {"moving", objects_of(view, moving)},
                            {"left", left}});
    co_return {};
  }
  std::cout << "cluster " << view.state.cluster_id << ", balance " << balance_text(view) << "\n\n";
  Table table({"BROKER", "ADDRESS", "RACK", "STATE", "REPLICAS", "LEADERS", "COMING", "GOING", ""});
  for (const auto& [id, share] : shares) {
    const auto address = view.addresses.find(id);
    const auto broker = view.state.brokers.find(id);
    table.add({std::to_string(id),
               address == view.addresses.end() ? "-" : to_string(address->second),
               broker == view.state.brokers.end() ? "" : broker->second.rack,
               {state_text(share), tone_of(share)},
               std::to_string(share.replicas),
               std::to_string(share.leads),
               std::to_string(share.coming),
               std::to_string(share.going),
               id == view.state.controller_id ? "controller" : ""});
  }
  table.print();
  std::cout << "\npartitions " << health.partitions << ", under-replicated "
            << health.under_replicated << ", without a leader " << health.offline << ", moving "
            << moving.size() << ", to move " << left << '\n';
  print_moves(view, moving);
  co_return {};
}

// ---- balance ----

Error not_in_effect(std::string_view setting) {
  return {Errc::timed_out, std::string(setting) +
                               " is set for all brokers, but the controller goes by another value: "
                               "see millrace config get"};
}

struct BalanceArguments {
  bool pause = false;
  bool resume = false;
};

Task<> balance(Environment& environment, const Context& context, BalanceArguments arguments) {
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  if (arguments.pause || arguments.resume) {
    MR_CO_CHECK(co_await change_for_all(*cluster, balance_settings::enable, set,
                                        arguments.pause ? "false" : "true"));
  }
  MR_CO_TRY(auto view, co_await view_of(*cluster));
  // The controller is told a moment later.
  for (int look = 1; view.balancing ? arguments.pause : arguments.resume; ++look) {
    if (look > looks_max) co_return not_in_effect(balance_settings::enable);
    MR_CO_CHECK(co_await sleep(pause_between_looks));
    MR_CO_TRY(view, co_await view_of(*cluster));
  }
  const auto moving = view.moving();
  const auto plan = view.left();
  if (context.output == OutputFormat::json) {
    json::array left;
    for (const auto& move : plan.moves) {
      left.emplace_back(json::object{{"topic", move.id.topic},
                                     {"partition", move.id.partition},
                                     {"replicas", json::value_from(move.replicas)},
                                     {"getting", json::value_from(move.getting)}});
    }
    json::array stuck;
    for (const auto& [broker, replicas] : plan.stuck) {
      stuck.emplace_back(json::object{{"broker", broker}, {"replicas", replicas}});
    }
    print_json(json::object{{"balance", balance_text(view)},
                            {"moving", objects_of(view, moving)},
                            {"left", std::move(left)},
                            {"stuck", std::move(stuck)}});
    co_return {};
  }
  if (view.moves_max.empty()) {
    std::cout << "balance none: the brokers of this cluster move nothing by themselves\n";
    print_moves(view, moving);
    co_return {};
  }
  std::cout << "balance " << balance_text(view) << ": " << moving.size()
            << " partitions move (at most " << view.moves_max << " at a time), " << copying(plan)
            << " are left to move, " << plan.moves.size() - copying(plan)
            << " to be led by another broker\n";
  for (const auto& [broker, replicas] : plan.stuck) {
    std::cout << "broker " << broker << " keeps " << replicas
              << " replicas: too few other brokers are left for them\n";
  }
  for (const auto& [id, share] : view.shares()) {
    if (share.lives || share.drained) continue;
    std::cout << "broker " << id << " is down with " << share.replicas
              << " replicas: shares are made even when it is back or replaced\n";
  }
  print_moves(view, moving);
  co_return {};
}

// ---- drain ----

struct DrainArguments {
  std::int32_t id = -1;
  bool cancel = false;
  bool wait = false;
};

// What is wrong with it, as CLI11 asks; nothing where that is nothing.
std::string broker_number(const std::string& text) {
  std::int32_t id = -1;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (failed == std::errc{} && end == text.data() + text.size() && id >= 0) return {};
  return in_quotes(text) + " is no number of a broker; millrace cluster status lists them";
}

Error unknown_broker(std::int32_t id, const std::map<std::int32_t, BrokerShare>& shares) {
  std::string known;
  for (const auto& [one, share] : shares) {
    known += (known.empty() ? "" : ", ") + std::to_string(one);
  }
  return {Errc::not_found, "there is no broker " + std::to_string(id) + "; there are " + known};
}

void print_drained(const Context& context, std::int32_t id, const BrokerShare& share,
                   std::size_t stuck) {
  if (context.output == OutputFormat::json) {
    print_json(json::object{{"broker", id},
                            {"drained", share.drained},
                            {"replicas", share.replicas},
                            {"leaders", share.leads},
                            {"stuck", stuck}});
  } else if (!share.drained) {
    std::cout << "broker " << id << " keeps what it has, and gets its share again\n";
  } else if (share.replicas == 0) {
    std::cout << "broker " << id << " is empty: it can be stopped\n";
  } else {
    std::cout << "broker " << id << " is being emptied: " << share.replicas << " replicas and "
              << share.leads << " leaders are left\n";
  }
  std::cout.flush();
}

// Why a broker will not be empty, as things are.
std::optional<Error> obstacle(const ClusterView& view, std::int32_t id, std::size_t stuck) {
  if (!view.balancing) {
    return Error{Errc::conflict,
                 "moves are paused: millrace cluster balance --resume lets them go on"};
  }
  if (stuck == 0) return std::nullopt;
  const auto others = std::ranges::count_if(view.state.brokers, [&view](const auto& entry) {
    return !view.drained.contains(entry.first);
  });
  return Error{Errc::conflict, std::to_string(stuck) + " replicas stay on broker " +
                                   std::to_string(id) + ": for as many replicas of a partition " +
                                   std::to_string(others) +
                                   " other brokers are too few; they move when there are more"};
}

bool passes_by_itself(const Error& error) {
  return error.code == Errc::overloaded || error.code == Errc::closed || error.code == Errc::io ||
         error.code == Errc::timed_out;
}

// Somebody else may change the same setting.
Task<> set_drained(ClusterClient& cluster, DrainArguments arguments) {
  constexpr int tries_max = 5;
  for (int tries = 1;; ++tries) {
    auto changing =
        change_for_all(cluster, balance_settings::drain_brokers,
                       arguments.cancel ? subtract : append, std::to_string(arguments.id));
    auto changed = co_await std::move(changing);
    if (changed || changed.error().code != Errc::overloaded || tries == tries_max) {
      co_return std::move(changed);
    }
    MR_CO_CHECK(co_await sleep(pause_between_looks));
  }
}

Task<> drain(Environment& environment, const Context& context, DrainArguments arguments) {
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  MR_CO_TRY(auto view, co_await view_of(*cluster));
  auto shares = view.shares();
  if (!shares.contains(arguments.id) && !view.drained.contains(arguments.id)) {
    co_return unknown_broker(arguments.id, shares);
  }
  if (view.moves_max.empty()) {
    co_return Error{Errc::unsupported,
                    "the brokers of this cluster move nothing by themselves: only Millrace's are "
                    "drained so; Kafka's kafka-reassign-partitions empties one"};
  }
  MR_CO_CHECK(co_await set_drained(*cluster, arguments));
  std::optional<std::size_t> told;
  int failures = 0;
  int stuck_looks = 0;
  for (int look = 1;;) {
    auto seen = co_await view_of(*cluster);
    if (!seen) {
      // The controller may have changed, or whom we ask may be starting again.
      if (!passes_by_itself(seen.error()) || ++failures > looks_max) co_return seen.error();
      MR_CO_CHECK(co_await sleep(pause_between_looks));
      auto again = co_await ClusterClient::connect(environment.network(), context.bootstrap);
      if (again) cluster = *std::move(again);
      continue;
    }
    failures = 0;
    view = *std::move(seen);
    auto share = view.shares()[arguments.id];
    share.drained = view.drained.contains(arguments.id);
    if (share.drained == arguments.cancel) {
      // The controller is told a moment later.
      if (++look > looks_max) co_return not_in_effect(balance_settings::drain_brokers);
      MR_CO_CHECK(co_await sleep(pause_between_looks));
      continue;
    }
    const auto stuck = share.drained ? view.stuck_on(arguments.id) : 0;
    // A move that ends between the answers that a view is made of looks as if it could not begin.
    stuck_looks = stuck > 0 ? stuck_looks + 1 : 0;
    if (told != share.replicas) print_drained(context, arguments.id, share, stuck);
    told = share.replicas;
    if (arguments.cancel || share.replicas == 0) co_return {};
    auto why = obstacle(view, arguments.id, stuck);
    if (!why && !arguments.wait && context.output != OutputFormat::json) {
      std::cout << "the cluster moves them by itself: millrace cluster status tells how far it is, "
                   "millrace cluster drain "
                << arguments.id << " --wait returns when the broker is empty\n";
    }
    if (why) {
      const bool stays = stuck == 0 || stuck_looks >= looks_until_stuck;
      if (arguments.wait && stays) {
        why->detail += concat("; millrace cluster drain ", arguments.id,
                              " --cancel lets the broker keep what it has");
        co_return *std::move(why);
      }
      if (!arguments.wait) std::cerr << "millrace: " << why->detail << '\n';
    }
    if (!arguments.wait) co_return {};
    MR_CO_CHECK(co_await sleep(pause_between_looks));
  }
}

}  // namespace

void add_status_verb(CLI::App& cluster, Context& context, Action& action) {
  auto* verb = cluster.add_subcommand("status", "show who has what, and what moves");
  add_examples(*verb, {"millrace cluster status", "millrace -b broker-2:9092 cluster status"});
  verb->callback([&context, &action] {
    action = [&context] {
      return run([&](Environment& environment) { return status(environment, context); });
    };
  });
}

void add_balance_verb(CLI::App& cluster, Context& context, Action& action) {
  auto* verb = cluster.add_subcommand(
      "balance", "show what moves by itself and what is left to move; pause it, or let it go on");
  const auto wanted = std::make_shared<BalanceArguments>();
  auto* pause = verb->add_flag("--pause", wanted->pause, "what moves now is the last that moves");
  verb->add_flag("--resume", wanted->resume, "go on")->excludes(pause);
  add_examples(*verb, {"millrace cluster balance", "millrace cluster balance --pause"});
  verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return balance(environment, context, *wanted); });
    };
  });
}

void add_drain_verb(CLI::App& cluster, Context& context, Action& action) {
  auto* verb = cluster.add_subcommand(
      "drain", "empty a broker: its replicas move to others, and it leads no more");
  const auto wanted = std::make_shared<DrainArguments>();
  verb->add_option("ID", wanted->id, "the broker's number; it may be down")
      ->required()
      ->check(broker_number);
  verb->add_flag("--cancel", wanted->cancel, "it keeps what it has, and gets its share again");
  verb->add_flag("--wait", wanted->wait, "until it is empty; fails where it cannot be");
  add_examples(*verb, {"millrace cluster drain 3 --wait", "millrace cluster drain 3 --cancel"});
  verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      const auto last_words = [wanted]() -> std::string {
        if (!wanted->wait || wanted->cancel) return {};
        return concat(
            "millrace: nobody waits any more, but what was begun goes on; millrace "
            "cluster drain ",
            wanted->id, " --cancel takes it back\n");
      };
      return run([&](Environment& environment) { return drain(environment, context, *wanted); },
                 last_words);
    };
  });
}

}  // namespace millrace::kernel::cli
