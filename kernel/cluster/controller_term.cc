#include "kernel/cluster/controller_term.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <utility>

#include "kernel/cluster/reassignment.h"
#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"
#include "kernel/partition/config_options.h"

namespace millrace::kernel {

namespace {
constexpr Duration give_up_time_max = std::chrono::milliseconds(500);
constexpr Duration again_after_min = std::chrono::milliseconds(500);
constexpr Duration again_after_max = std::chrono::seconds(30);
}  // namespace

ControllerTerm::ControllerTerm(const ControllerParts& parts, std::int32_t epoch, Version version)
    : parts_(parts),
      epoch_(epoch),
      writes_(parts.coordination, epoch, version),
      sender_(parts.environment.control(), parts.target, *this, state_, epoch),
      balancing_(parts.metrics) {
  auto [end, ended] = make_pending<>();
  end_ = std::move(end);
  ended_ = std::move(ended);
  take_defaults();
}

void ControllerTerm::take_defaults() {
  state_.defaults = std::make_shared<const std::map<std::string, std::string>>(parts_.defaults);
  if (serving_) wake_balance(true);
}

void ControllerTerm::resign(Error why) {
  serving_ = false;
  end_.resolve(std::move(why));
}

void ControllerTerm::deposed() {
  resign(Error{Errc::conflict, "a broker knows of a newer controller"});
}

Task<> ControllerTerm::serve() {
  const auto watch = [this](Task<> (ControllerTerm::*loop)(), std::string name) {
    spawn(parts_.environment.control(), go_on(loop, name), name, &background_);
  };
  auto loaded = co_await load();
  if (loaded) {
    serving_ = true;
    has_served_ = true;
    watch(&ControllerTerm::watch_brokers, "brokers");
    watch(&ControllerTerm::watch_configs, "changes of settings");
    watch(&ControllerTerm::rebalance, "preferred leaders");
    watch(&ControllerTerm::balance, "moves");
    watch(&ControllerTerm::write_again, "what is not written yet");
    watch(&ControllerTerm::open_again, "replicas that could not be opened");
  } else {
    resign(std::move(loaded).error());
  }
  auto why = co_await ended_;
  serving_ = false;
  background_.cancel();
  writes_.stop();
  MR_CO_CHECK(co_await sender_.close());
  erased_.notify_all();
  MR_CO_CHECK(co_await running_.close());
  if (why.error().code == Errc::fenced) co_return why.error();
  // So that somebody else, or we anew, can be elected at once; if not, when the session ends.
  const auto gone = co_await writes_.give_up(give_up_time_max);
  if (!gone && gone.error().code == Errc::fenced) co_return gone.error();
  co_return why.error();
}

// Each looks at what there is, and may begin anew after something that passes.
Task<> ControllerTerm::go_on(Task<> (ControllerTerm::*loop)(), std::string name) {
  MR_CO_TRY(const auto pass, running_.enter());
  auto& control = parts_.environment.control();
  auto pause = again_after_min;
  while (true) {
    const auto begun = control.now();
    auto running = (this->*loop)();
    auto ended = co_await std::move(running);
    if (!ended && ended.error().code == Errc::cancelled) co_return {};
    if (!ended && ends_term(ended.error())) {
      resign(std::move(ended).error());
      co_return {};
    }
    if (control.now() - begun > again_after_max) pause = again_after_min;
    parts_.log.warning("the controller is held up; it is tried again",
                       {{"by", name},
                        {"error", ended ? std::string() : to_string(ended.error())},
                        {"after_ms", pause / std::chrono::milliseconds(1)}});
    MR_CO_CHECK(co_await sleep(pause));
    pause = std::min(2 * pause, again_after_max);
  }
}

Task<Controller::Turn> ControllerTerm::turn() {
  Controller::Turn turn;
  const auto over = [] { return Error{Errc::fenced, "This is not the correct controller."}; };
  if (!serving_) co_return over();
  MR_CO_TRY(turn.pass, running_.enter());
  MR_CO_TRY(turn.held, co_await changes_.lock());
  if (!serving_) co_return over();
  co_return std::move(turn);
}

// ---- what there is ----

Task<> ControllerTerm::load() {
  state_.controller_id = parts_.id;
  MR_CO_CHECK(co_await known_leases_.load(parts_.log));
  MR_CO_CHECK(co_await gone_brokers_.load(parts_.log));
  MR_CO_TRY(const auto cluster, co_await writes_.get(std::string(znodes::cluster_id)));
  MR_CO_TRY(state_.cluster_id, znodes::decode_cluster_id(cluster.value));
  MR_CO_CHECK(co_await read_broker_configs());
  std::vector<UnreadableTopic> unreadable;
  MR_CO_TRY(auto topics, co_await read_topics(writes_, &unreadable));
  for (const auto& [name, why] : unreadable) {
    parts_.log.error("a topic is left out, for what is stored of it cannot be read; mend the key",
                     {{"topic", name}, {"error", to_string(why)}});
    state_.unreadable.insert(name);
  }
  for (auto& topic : topics) {
    for (std::size_t at = 0; at < topic.partitions.size(); ++at) {
      if (!is_reassigning(topic.partitions[at])) continue;
      moving_.insert({topic.name, static_cast<std::int32_t>(at)});
    }
    state_.put(std::move(topic));
  }
  MR_CO_TRY(const auto marks, co_await writes_.list(std::string(znodes::delete_topics)));
  for (const auto& name : marks) {
    const auto found = state_.topics.find(name);
    if (found == state_.topics.end()) continue;
    const auto topic = found->second;
    state_.remove(name);
    begin_erasing(topic);
  }
  co_return {};
}

Task<> ControllerTerm::read_broker_configs() {
  std::vector<znodes::ConfigEntity> entities;
  MR_CO_TRY(auto brokers, co_await writes_.list(std::string(znodes::broker_configs)));
  for (auto& broker : brokers) {
    entities.push_back({znodes::ConfigEntity::Kind::broker, std::move(broker)});
  }
  MR_CO_TRY(const auto groups, co_await writes_.list(std::string(znodes::group_configs)));
  for (const auto& name : groups) {
    auto group = znodes::group_of(name);
    if (group) entities.push_back({znodes::ConfigEntity::Kind::group, *std::move(group)});
  }
  for (const auto& entity : entities) {
    const auto key = znodes::configs_of(entity);
    const auto node = co_await writes_.get(key);
    if (!node && node.error().code == Errc::not_found) continue;
    if (!node) co_return node.error();
    auto configs = readable_configs(key, node->value, parts_.log);
    state_.broker_configs.insert_or_assign(znodes::config_key_of(entity), std::move(configs));
  }
  co_return {};
}

// What is not a broker's is named and passed over.
Task<ControllerTerm::Brokers> ControllerTerm::read_brokers() {
  Brokers brokers;
  MR_CO_TRY(const auto ids, co_await writes_.list(std::string(znodes::broker_ids)));
  for (const auto& name : ids) {
    std::int32_t id = -1;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), id);
    const auto key = std::string(znodes::broker_ids) + "/" + name;
    const auto node = co_await writes_.get(key);
    if (!node && node.error().code == Errc::not_found) continue;
    if (!node) co_return node.error();
    auto broker = failed == std::errc{} && end == name.data() + name.size()
                      ? znodes::decode_broker(id, node->value)
                      : Result<BrokerState>(Error{Errc::corrupt, key + " is no broker's key"});
    if (broker) {
      brokers.emplace(id, *std::move(broker));
    } else {
      parts_.log.warning("a broker's registration cannot be read; it is passed over",
                         {{"key", key}, {"error", to_string(broker.error())}});
    }
  }
  co_return std::move(brokers);
}

std::string ControllerTerm::setting(const TopicState& topic, const std::string& name,
                                    const std::string& fallback) const {
  const auto find = [&name](const auto& settings) -> const std::string* {
    const auto found = settings.find(name);
    return found == settings.end() ? nullptr : &found->second;
  };
  if (const auto* own = find(topic.configs)) return *own;
  const auto* option = find_broker_option(name);
  const bool of_all = option && option->has(config_of_all);
  for (const auto& broker : {std::to_string(parts_.id), std::string(all_brokers_key)}) {
    if (of_all && broker != all_brokers_key) continue;
    const auto found = state_.broker_configs.find(broker);
    if (found == state_.broker_configs.end()) continue;
    if (const auto* changed = find(found->second)) return *changed;
  }
  const auto* configured = find(parts_.defaults);
  return configured ? *configured : fallback;
}

std::int64_t ControllerTerm::number(const std::string& name, std::int64_t fallback) const {
  const auto text = setting({}, name, "");
  std::int64_t number = fallback;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// ---- brokers ----

Task<> ControllerTerm::watch_brokers() {
  Seen seen;
  while (true) {
    MR_CO_TRY(seen, co_await writes_.next_change(std::string(znodes::broker_ids), seen));
    MR_CO_TRY(auto brokers, co_await read_brokers());
    MR_CO_CHECK(co_await take_brokers(std::move(brokers)));
  }
}

// Whoever has a new lease was gone and has come back: what it led goes elsewhere where it can.
Task<> ControllerTerm::take_brokers(Brokers brokers) {
  MR_CO_TRY(const auto held, co_await turn());
  BrokerIds stayed;
  BrokerIds now;
  for (const auto& [id, broker] : brokers) {
    now.insert(id);
    const auto before = state_.brokers.find(id);
    const bool bounced = before != state_.brokers.end() && before->second.epoch != broker.epoch;
    // Of who was there before our term it is known which lease it had then.
    const bool stays = before != state_.brokers.end() ? !bounced : !known_leases_.bounced(broker);
    if (stays) stayed.insert(id);
    if (before == state_.brokers.end()) {
      parts_.log.info("a broker is there", {{"broker", id}, {"epoch", broker.epoch}});
    } else if (bounced) {
      parts_.log.info("a broker is back", {{"broker", id}, {"epoch", broker.epoch}});
    }
    if (before == state_.brokers.end() || bounced) {
      balancing_.even = true;
      leaving_.erase(id);
      offline_.erase(id);
    }
  }
  for (const auto& [id, broker] : state_.brokers) {
    if (now.contains(id)) continue;
    parts_.log.warning("a broker is gone", {{"broker", id}});
    leaving_.erase(id);
    offline_.erase(id);
  }
  state_.brokers = std::move(brokers);
  MR_CO_CHECK(co_await write(decide_all({stayed, now}), IfItFails::hold));
  sender_.brokers_changed();
  MR_CO_CHECK(co_await write_leases());
  for (const auto& [name, erasing] : erasing_) {
    for (const auto broker : erasing.waiting) {
      sender_.topic_deleted({name, erasing.topic->id}, broker);
    }
  }
  erased_.notify_all();
  balancing_.brokers_known = true;
  wake_balance(true);
  co_return co_await finish_moves();
}

// ---- settings ----

// Whoever changes settings writes them and leaves a mark that says so.
Task<> ControllerTerm::watch_configs() {
  const std::string prefix(znodes::config_changes);
  Seen seen;
  while (true) {
    MR_CO_TRY(seen, co_await writes_.next_change(prefix, seen));
    MR_CO_TRY(const auto marks, co_await writes_.list(prefix));
    Result<> all;
    for (const auto& mark : marks) {
      auto taken = co_await take_config(prefix + "/" + mark);
      if (!taken && ends_term(taken.error())) co_return taken.error();
      if (!taken) all = std::move(taken);
    }
    MR_CO_CHECK(std::move(all));
  }
}

Task<> ControllerTerm::take_config(std::string mark) {
  MR_CO_TRY(const auto held, co_await turn());
  const auto node = co_await writes_.get(mark);
  if (!node && node.error().code == Errc::not_found) co_return {};
  if (!node) co_return node.error();
  const auto entity = znodes::decode_config_change(node->value);
  if (!entity) {
    parts_.log.warning("a mark of changed settings cannot be read; it is removed",
                       {{"key", mark}, {"error", to_string(entity.error())}});
  } else {
    const auto key = znodes::configs_of(*entity);
    const auto stored = co_await writes_.get(key);
    if (!stored && stored.error().code != Errc::not_found) co_return stored.error();
    auto configs =
        stored ? znodes::decode_configs(key, stored->value)
               : Result<std::map<std::string, std::string>>(std::map<std::string, std::string>());
    const auto known = entity->kind == znodes::ConfigEntity::Kind::topic
                           ? state_.topics.find(entity->name)
                           : state_.topics.end();
    if (!configs) {
      parts_.log.warning("changed settings cannot be read; those before go on",
                         {{"key", key}, {"error", to_string(configs.error())}});
    } else if (entity->kind != znodes::ConfigEntity::Kind::topic) {
      state_.broker_configs.insert_or_assign(znodes::config_key_of(*entity), *std::move(configs));
      sender_.changed();
      wake_balance(true);
    } else if (known != state_.topics.end()) {
      auto topic = *known->second;
      topic.configs = *std::move(configs);
      state_.put(std::move(topic));
      sender_.topic_changed(entity->name);
    }
  }
  std::vector<Write> writes;
  writes.push_back({.key = mark, .value = {}});
  const auto removed = co_await writes_.commit(std::move(writes));
  if (!removed && removed.error().code != Errc::not_found) co_return removed.error();
  co_return {};
}

// ---- preferred leaders ----

// To brokers that do not lead more of the partitions they are preferred for than is put up with.
std::vector<ControllerTerm::PartitionChange> ControllerTerm::moves_back(
    std::int64_t percentage) const {
  struct Preferred {
    std::size_t partitions = 0;
    std::size_t led_elsewhere = 0;
  };
  std::map<std::int32_t, Preferred> brokers;
  std::vector<PartitionChange> moves;
  for (const auto& [name, topic] : state_.topics) {
    for (std::size_t at = 0; at < topic->partitions.size(); ++at) {
      const auto& state = topic->partitions[at];
      if (state.replicas.empty()) continue;
      auto& broker = brokers[state.replicas.front()];
      ++broker.partitions;
      if (state.leader != state.replicas.front()) ++broker.led_elsewhere;
      const TopicPartition id{name, static_cast<std::int32_t>(at)};
      auto elected = elect_preferred(state, usable_for(id));
      if (elected) moves.push_back({name, id.partition, *std::move(elected)});
    }
  }
  std::erase_if(moves, [&](const PartitionChange& move) {
    const auto& broker = brokers[move.state.leader];
    return broker.led_elsewhere * 100 <=
           static_cast<std::size_t>(std::max<std::int64_t>(percentage, 0)) * broker.partitions;
  });
  return moves;
}

Task<> ControllerTerm::rebalance() {
  while (true) {
    const std::chrono::seconds interval(number("leader.imbalance.check.interval.seconds", 300));
    MR_CO_CHECK(co_await sleep(interval));
    if (setting({}, "auto.leader.rebalance.enable", "true") != "true") continue;
    MR_CO_TRY(const auto held, co_await turn());
    auto moves = moves_back(number("leader.imbalance.per.broker.percentage", 10));
    if (moves.empty()) continue;
    parts_.log.info("leaders move back to their preferred brokers", {{"partitions", moves.size()}});
    MR_CO_CHECK(co_await write(std::move(moves)));
  }
}

}  // namespace millrace::kernel
