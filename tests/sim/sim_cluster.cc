#include "sim_cluster.h"

#include <algorithm>
#include <set>
#include <utility>

#include <millrace/kafka/delete_topics.h>

#include "sim_client.h"

namespace millrace::testing {

namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const TopicPartition orders{"orders", 0};
constexpr Duration look_each = milliseconds(250);
constexpr Duration heal_time_max = minutes(2);
constexpr std::size_t shown_max = 5;

std::vector<std::string> sets_of(std::size_t broker, std::vector<std::string> sets) {
  sets.insert(
      sets.end(),
      {"broker.id=" + std::to_string(broker + 1), R"(defaults."min.insync.replicas"=2)",
       R"(defaults."replica.lag.time.max.ms"=3000)", R"(defaults."file.delete.delay.ms"=1000)"});
  return sets;
}

Error not_within(const std::string& what) { return {Errc::timed_out, "not in time: " + what}; }

}  // namespace

const char* name_of(SimFault fault) noexcept {
  constexpr const char* names[] = {"kill",
                                   "kill_two",
                                   "power",
                                   "power_in_a_change",
                                   "restart",
                                   "restart_all",
                                   "empty_disk",
                                   "full_disk",
                                   "slow_disk",
                                   "cut_from_brokers",
                                   "cut_from_coordination",
                                   "cut_from_clients",
                                   "cut_from_all",
                                   "cut_with_clients",
                                   "cut_leaving",
                                   "cut_arriving",
                                   "resets",
                                   "late_links",
                                   "sleeps",
                                   "coordination_away",
                                   "session_ends",
                                   "clock_jumps",
                                   "deleted_while_down"};
  static_assert(std::size(names) == sim_faults);
  return names[static_cast<std::size_t>(fault)];
}

SimCluster::SimCluster(std::uint64_t seed, std::size_t brokers, std::vector<std::string> sets)
    : world_(seed), service_(world_), client_(world_.add_node("client")) {
  std::vector<std::string> hosts;
  for (std::size_t at = 0; at < brokers; ++at) {
    hosts.push_back("b" + std::to_string(at + 1));
    auto& node = world_.add_node(hosts.back());
    nodes_.push_back(&node);
    brokers_.push_back(std::make_unique<SimBroker>(world_, node, sets_of(at, sets)));
    brokers_.back()->share(service_);
  }
  load_ = std::make_unique<SimLoad>(client_.network(), std::move(hosts), orders);
}

SimCluster::~SimCluster() {
  load_->end();
  for (auto& broker : brokers_) static_cast<void>(broker->stop());
}

template <class F>
auto SimCluster::on_client(F make) {
  return world_.run(*client_.shards()[0], std::move(make), minutes(2));
}

Result<> SimCluster::start() {
  for (auto& broker : brokers_) MR_CHECK(broker->start());
  const auto replicas = static_cast<std::int16_t>(brokers_.size());
  MR_CHECK(on_client([this, replicas] { return load_->create(replicas); }));
  auto& shard = *client_.shards()[0];
  shard.post([this, &shard] {
    spawn(shard, load_->send_all(), "producer");
    spawn(shard, load_->follow(), "reader");
  });
  return heals();
}

// ---- what is so ----

Result<SimPartitionState> SimCluster::state() {
  return on_client([this] { return load_->state(); });
}

std::size_t SimCluster::leader() {
  const auto now = state();
  return now && now->leader > 0 ? static_cast<std::size_t>(now->leader) - 1 : 0;
}

std::size_t SimCluster::controller() {
  const auto now = state();
  return now && now->controller > 0 ? static_cast<std::size_t>(now->controller) - 1 : 0;
}

std::size_t SimCluster::another(std::size_t broker) {
  return (broker + 1 + world_.random().below(brokers_.size() - 1)) % brokers_.size();
}

bool SimCluster::goes_on(std::size_t records, Duration limit) {
  const auto wanted = load_->acknowledged() + records;
  return world_.run_until(
      [this, wanted] {
        return load_->acknowledged() >= wanted || !load_->history().errors.empty();
      },
      limit);
}

bool SimCluster::healed() {
  std::optional<std::int32_t> leader;
  for (std::size_t at = 0; at < brokers_.size(); ++at) {
    const auto told = on_client([this, at] { return load_->state_at(at); });
    if (!told || told->leader < 1 || told->in_sync.size() != brokers_.size()) return false;
    if (leader.value_or(told->leader) != told->leader) return false;
    leader = told->leader;
  }
  return true;
}

Result<> SimCluster::in_sync() {
  const auto until = world_.now() + heal_time_max;
  while (!healed()) {
    if (world_.now() > until) return not_within("all replicas in sync");
    world_.run_for(look_each);
  }
  return {};
}

Result<> SimCluster::heals() {
  MR_CHECK(in_sync());
  if (!goes_on(10, heal_time_max)) return not_within("messages go through: " + load_->last_error());
  return {};
}

// ---- what happens ----

// Long as a rule, and sometimes over before anybody has noticed.
Duration SimCluster::some_of(Duration most) {
  auto& random = world_.random();
  const auto half = static_cast<std::uint64_t>(most.count()) / 2;
  const auto time = random.one_in(4) ? random.below(half / 4) : half + random.below(half);
  return Duration(static_cast<Duration::rep>(time));
}

Result<> SimCluster::happens(SimFault fault, std::size_t broker) {
  world_.note(std::string(name_of(fault)) + " of " + nodes_[broker]->name());
  auto& random = world_.random();
  hold(milliseconds(500));
  switch (fault) {
    case SimFault::kill:
    case SimFault::kill_two:
    case SimFault::power:
    case SimFault::power_in_a_change:
    case SimFault::empty_disk: return die(fault, broker);
    case SimFault::restart_all:
      for (std::size_t at = 0; at < brokers_.size(); ++at) {
        MR_CHECK(happens(SimFault::restart, at));
        MR_CHECK(heals());
      }
      return {};
    case SimFault::restart:
      MR_CHECK(brokers_[broker]->stop());
      hold(seconds(8));
      return brokers_[broker]->start();
    case SimFault::full_disk:
      nodes_[broker]->files().limit_bytes(1);
      hold(seconds(10));
      nodes_[broker]->files().limit_bytes({});
      return {};
    case SimFault::slow_disk:
      if (random.one_in(2)) {
        nodes_[broker]->files().slow_down(milliseconds(100));
      } else {
        nodes_[broker]->files().slow_down(seconds(5), 10);
      }
      hold(seconds(20));
      nodes_[broker]->files().slow_down({});
      return {};
    case SimFault::resets:
      for (int n = 0; n < 10; ++n) {
        world_.cut(*nodes_[broker], *nodes_[another(broker)]);
        if (random.one_in(3)) world_.cut(*nodes_[broker], client_);
        hold(seconds(1));
      }
      return {};
    case SimFault::late_links:
      world_.delay(*nodes_[broker], random.one_in(2) ? milliseconds(50) : seconds(1));
      hold(seconds(15));
      world_.heal();
      return {};
    case SimFault::sleeps: {
      const auto time = some_of(seconds(15));
      nodes_[broker]->pause(time);
      world_.run_for(time);
      return {};
    }
    case SimFault::coordination_away:
      service_.stop();
      world_.run_for(seconds(30));
      service_.go_on();
      return {};
    case SimFault::session_ends:
      service_.expire(*nodes_[broker]);
      hold(seconds(2));
      return {};
    case SimFault::clock_jumps:
      for (auto* node : nodes_) {
        // Records from more than an hour ahead would be refused, and rightly.
        const minutes by(random.below(50));
        node->jump_wall(random.one_in(2) ? Duration(by) : -Duration(by));
        hold(seconds(1));
      }
      return {};
    case SimFault::deleted_while_down: return delete_while_down(broker);
    default: return cut(fault, broker);
  }
}

Result<> SimCluster::die(SimFault fault, std::size_t broker) {
  const auto second = another(broker);
  if (fault == SimFault::power_in_a_change) {
    nodes_[broker]->files().crash_after(world_.random().below(20) + 1);
    hold(seconds(2));
  }
  if (fault == SimFault::power || fault == SimFault::power_in_a_change) {
    brokers_[broker]->crash();
  } else {
    brokers_[broker]->kill();
  }
  if (fault == SimFault::kill_two) brokers_[second]->kill();
  if (fault == SimFault::empty_disk) MR_CHECK(wipe(broker));
  hold(seconds(10));
  MR_CHECK(brokers_[broker]->start());
  if (fault != SimFault::kill_two) return {};
  hold(seconds(5));
  return brokers_[second]->start();
}

Result<> SimCluster::wipe(std::size_t broker) {
  auto& files = nodes_[broker]->files();
  MR_TRY(const auto found, files.list("/data"));
  for (const auto& one : found) {
    const auto path = "/data/" + one.name;
    MR_CHECK(one.is_folder ? files.remove_tree(path) : files.remove(path));
  }
  return {};
}

Result<> SimCluster::cut(SimFault fault, std::size_t broker) {
  const auto& victim = *nodes_[broker];
  const bool leaving = fault != SimFault::cut_arriving;
  const bool arriving = fault != SimFault::cut_leaving;
  const auto block = [&](const SimEnvironment& other) {
    if (leaving) world_.block_one_way(victim, other);
    if (arriving) world_.block_one_way(other, victim);
  };
  const bool from_clients = fault != SimFault::cut_from_brokers &&
                            fault != SimFault::cut_from_coordination &&
                            fault != SimFault::cut_with_clients;
  const bool from_brokers =
      fault != SimFault::cut_from_coordination && fault != SimFault::cut_from_clients;
  const bool from_coordination =
      fault != SimFault::cut_from_brokers && fault != SimFault::cut_from_clients;
  if (from_clients) block(client_);
  for (std::size_t at = 0; from_brokers && at < nodes_.size(); ++at) {
    if (at != broker) block(*nodes_[at]);
  }
  if (from_coordination) service_.cut_off(victim);
  hold(seconds(15));
  if (from_coordination) service_.reach(victim);
  world_.heal();
  return {};
}

Result<> SimCluster::change_topic(const std::string& topic, bool create) {
  const auto deleting = [](Network& network, std::string host, std::string name) -> Task<> {
    MR_CO_TRY(auto client, co_await connect_to(network, std::move(host)));
    kafka::DeleteTopicsRequest request;
    request.timeout_ms = 10'000;
    request.topics.emplace_back().name = std::move(name);
    MR_CO_TRY(const auto answer, co_await client->call(std::move(request)));
    if (answer.responses.size() == 1 && answer.responses[0].error_code == 0) co_return {};
    co_return Error{Errc::internal, "the topic was not deleted"};
  };
  const auto creating = [](Network& network, std::string host, std::string name,
                           std::int16_t replicas) -> Task<> {
    MR_CO_TRY(auto client, co_await connect_to(network, std::move(host)));
    co_return co_await create_topic(*client, std::move(name), 1, replicas);
  };
  // The controller alone takes such requests.
  return on_client([&, host = nodes_[controller()]->name()] {
    const auto replicas = static_cast<std::int16_t>(brokers_.size());
    return create ? creating(client_.network(), host, topic, replicas)
                  : deleting(client_.network(), host, topic);
  });
}

// Its log is removed when the broker is back.
Result<> SimCluster::delete_while_down(std::size_t broker) {
  const auto topic = "short-lived-" + std::to_string(++topics_made_);
  const auto there = [&] {
    const auto found = nodes_[broker]->files().list("/data");
    return found && std::ranges::any_of(*found, [&](const FileInfo& one) {
             return one.name.starts_with(topic + "-0");
           });
  };
  MR_CHECK(change_topic(topic, true));
  if (!world_.run_until(there, seconds(30))) return not_within("a replica of " + topic);
  brokers_[broker]->kill();
  world_.run_for(seconds(8));  // until nobody asks it any more
  MR_CHECK(change_topic(topic, false));
  MR_CHECK(brokers_[broker]->start());
  if (!world_.run_until([&] { return !there(); }, minutes(1))) {
    return not_within("the log of " + topic + " is removed");
  }
  return {};
}

// ---- the verdict ----

// The bytes of all segments.
Result<std::string> SimCluster::log_of(std::size_t broker) {
  auto& files = nodes_[broker]->files();
  const auto folder = "/data/" + to_string(orders);
  MR_TRY(const auto found, files.list(folder));
  std::string bytes;
  for (const auto& file : found) {
    if (!file.name.ends_with(".log")) continue;
    MR_TRY(const auto content, read_file(files, folder + "/" + file.name));
    bytes += as_text(content.bytes());
  }
  return bytes;
}

std::vector<std::string> SimCluster::verdict() {
  std::vector<std::string> found;
  const auto check = [&found](const Result<>& result, const std::string& what) {
    if (!result) found.push_back(what + ": " + to_string(result.error()));
  };
  load_->end();
  if (!world_.run_until([this] { return load_->ended(); }, minutes(2))) {
    found.push_back("the load does not end: " + load_->last_error());
  }
  if (load_->history().errors.empty()) check(in_sync(), "at the end");
  check(on_client([this] { return load_->read_log(); }), "the log cannot be read");
  world_.run_for(seconds(2));  // followers have what was written last
  for (auto& one : violations(load_->history())) found.push_back(std::move(one));
  std::set<std::string> logs;
  for (std::size_t at = 0; at < brokers_.size(); ++at) {
    auto log = log_of(at);
    if (log) logs.insert(*std::move(log));
  }
  for (const auto& report : client_.reports()) found.push_back(report);
  if (logs.size() > 1) found.emplace_back("replicas differ");
  if (found.size() > shown_max) found.resize(shown_max);
  return found;
}

}  // namespace millrace::testing
