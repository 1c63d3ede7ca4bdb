#include "kernel/streams/aggregate_router.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "kernel/broker/tell.h"
#include "kernel/cluster/topics.h"
#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

constexpr Duration quiet_after_a_line = std::chrono::seconds(10);

AggregateAnswer refused(ErrorCode error, std::string detail) {
  return {error, std::move(detail), nullptr};
}

AggregateAnswer nobody(std::string_view aggregate) {
  return refused(ErrorCode::coordinator_not_available,
                 "no aggregate \"" + std::string(aggregate) + "\" is loaded");
}

Call<AggregateAnswer> answered(AggregateAnswer answer) {
  return {Pending<>::ready({}), Pending<AggregateAnswer>::ready(std::move(answer))};
}

std::string not_here(std::string_view topic, std::int32_t partition) {
  return to_string(TopicPartition{std::string(topic), partition}) + " is not led here";
}

// "TOPIC-N"
std::optional<TopicPartition> partition_in(std::string_view key) {
  const auto dash = key.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  TopicPartition named{std::string(key.substr(0, dash)), -1};
  const auto number = key.substr(dash + 1);
  const auto [end, failed] =
      std::from_chars(number.data(), number.data() + number.size(), named.partition);
  if (failed != std::errc{} || end != number.data() + number.size()) return std::nullopt;
  return named;
}

// The questions of one shard, answered when the last is.
Task<std::vector<AggregateAnswer>> query_shard(AggregateShard& at,
                                               const DeclaredAggregate& aggregate,
                                               std::function<std::unique_ptr<Message>()> make) {
  std::vector<Pending<AggregateAnswer>> asked;
  for (const auto& runner : at.all(aggregate)) {
    auto [resolver, pending] = make_pending<AggregateAnswer>();
    runner->query({}, make(), Asker(at.shard(), std::move(resolver)));
    asked.push_back(std::move(pending));
  }
  std::vector<AggregateAnswer> answers;
  for (auto& one : asked) {
    auto answer = co_await one;
    answers.push_back(answer ? *std::move(answer)
                             : refused(ErrorCode::not_coordinator, answer.error().detail));
  }
  co_return std::move(answers);
}

Task<> open_on(AggregateShard& shard) {
  shard.open();
  co_return {};
}

Task<> give_up_on(AggregateShard& shard, const DeclaredAggregate& aggregate) {
  shard.give_up(aggregate);
  co_return {};
}

struct RunnerCount {
  std::int32_t partitions = 0;
  std::int32_t serving = 0;
};

// By number.
Task<std::vector<RunnerCount>> count_on(AggregateShard& shard,
                                        const AggregateShard::Declared& declared) {
  std::vector<RunnerCount> counts;
  for (const auto& aggregate : declared) {
    auto& count = counts.emplace_back();
    for (const auto& runner : shard.all(*aggregate)) {
      ++count.partitions;
      if (runner->state() == AggregateRunner::State::serving) ++count.serving;
    }
  }
  co_return std::move(counts);
}

}  // namespace

AggregateRouter::AggregateRouter(KernelBroker& broker, OperatorSettings settings)
    : broker_(broker), effects_(broker.partitions(), broker.parts().environment.clock(), *this) {
  for (const auto& state : broker.partitions().shards()) {
    // One is enough to see that a topic has gone.
    const bool first = shards_.empty();
    shards_.push_back(std::make_unique<AggregateShard>(broker, *state, effects_, settings,
                                                       declared_, [this, first] {
                                                         if (first) erase_orphans();
                                                       }));
  }
}

AggregateRouter::~AggregateRouter() = default;

Result<> AggregateRouter::add(AggregateFactory& factory, AggregateOrigin origin) {
  auto declaration = factory.declaration();
  const auto& plugin = origin.plugin;
  const auto refuse = [&](Errc code, std::string why) {
    return Error{code, plugin + ": aggregate \"" + declaration.name + "\": " + why};
  };
  if (declaration.name.empty())
    return refuse(Errc::invalid_argument, "its declaration has no name");
  if (const auto bad = check_topic_name(declaration.topic)) {
    return refuse(Errc::invalid_argument, bad->message);
  }
  if (declaration.partitions < 1 || declaration.replication_factor == 0 ||
      declaration.replication_factor < -1) {
    return refuse(Errc::invalid_argument, "its topic needs one partition and one replica at least");
  }
  for (const auto& other : declared_) {
    if (other->declaration.name == declaration.name) {
      return refuse(Errc::conflict, "another of this name is offered by " + other->plugin);
    }
    if (other->declaration.topic == declaration.topic) {
      return refuse(Errc::conflict, "its topic " + declaration.topic + " is that of \"" +
                                        other->declaration.name + "\", offered by " +
                                        other->plugin);
    }
  }
  auto compression = CompressionId::none;
  if (const auto declared = declaration.settings.find("compression.type");
      declared != declaration.settings.end()) {
    const auto codec =
        TopicConfig::load({}, {{declared->first, declared->second}}).compression_type;
    if (codec && *codec != CompressionId::none && !broker_.parts().codecs.find(*codec)) {
      return refuse(Errc::invalid_argument,
                    "no plugin of the codec " + declared->second +
                        " is loaded, with which it wants its events compressed");
    }
    compression = codec.value_or(CompressionId::none);
    // The topic takes them as they come, also where it was made with another codec.
    declared->second = "producer";
  }
  const bool beside = declaration.placement == Placement::user_partition;
  auto family = beside ? declaration.topic + '.' : std::string();
  NewTopic topic;
  topic.name = beside ? family : declaration.topic;
  topic.partitions = declaration.partitions;
  topic.replication_factor = declaration.replication_factor;
  for (const auto& [name, value] : declaration.settings) topic.configs.emplace_back(name, value);
  broker_.own_topic(std::move(topic));
  declared_.push_back(std::make_unique<DeclaredAggregate>(
      factory, std::move(declaration), std::move(origin.plugin), declared_.size(), compression,
      std::move(family), origin.path));
  versions_.push_back({nullptr, std::move(origin.version), std::move(origin.path)});
  return {};
}

// All at once; the first error.
template <class F>
Task<> AggregateRouter::on_each_shard(F make) {
  Shard& here = co_await this_shard();
  std::vector<Pending<>> working;
  for (const auto& shard : shards_) {
    auto work = [at = shard.get(), make] { return make(*at); };
    working.push_back(start(here, run_on(shard->shard(), std::move(work))));
  }
  Result<> first_failure;
  for (auto& one : working) {
    auto done = co_await one;
    if (!done && first_failure) first_failure = std::move(done);
  }
  co_return first_failure;
}

Task<> AggregateRouter::open() {
  auto opening = on_each_shard([](AggregateShard& at) { return open_on(at); });
  co_return co_await std::move(opening);
}

Task<> AggregateRouter::close() {
  MR_CO_CHECK(co_await making_.close());
  auto closing = on_each_shard([](AggregateShard& at) { return at.close(); });
  co_return co_await std::move(closing);
}

const DeclaredAggregate* AggregateRouter::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find_if(
      declared_, [name](const auto& one) { return one->declaration.name == name; });
  return found == declared_.end() ? nullptr : found->get();
}

AggregateShard& AggregateRouter::here() noexcept {
  return *shards_[broker_.partitions().here().shard().index()];
}

// Two shards may ask for the same object.
ReplyTo AggregateRouter::next_reply() noexcept {
  return static_cast<ReplyTo>(next_reply_.fetch_add(1, std::memory_order_relaxed));
}

AggregateRouter::Place AggregateRouter::place(const DeclaredAggregate& aggregate,
                                              std::string_view key, AggregateShard& at) const {
  const auto& cluster = at.state().cluster();
  if (!cluster) {
    return {.error = ErrorCode::coordinator_not_available,
            .detail = "the broker has not joined its cluster yet"};
  }
  if (!aggregate.family.empty()) return place_beside(aggregate, key, *cluster);
  const auto* topic = cluster->find(std::string_view(aggregate.declaration.topic));
  if (!topic) return {.no_topic = true};
  const auto partitions = static_cast<std::int32_t>(topic->partitions.size());
  const auto partition = aggregate.factory.partition_of(key, partitions);
  if (partition < 0 || partition >= partitions) {
    return {.error = ErrorCode::unknown_server_error,
            .detail = "the aggregate places this key outside its topic"};
  }
  const auto leader = topic->partitions[static_cast<std::size_t>(partition)].leader;
  return {.declared = &aggregate.declaration.topic, .leader = leader, .partition = partition};
}

AggregateRouter::Place AggregateRouter::place_beside(const DeclaredAggregate& aggregate,
                                                     std::string_view key,
                                                     const ClusterState& cluster) const {
  const auto named = partition_in(key);
  const auto* beside = named ? cluster.find(std::string_view(named->topic)) : nullptr;
  const auto at = named ? static_cast<std::size_t>(named->partition) : 0;
  if (!beside || named->partition < 0 || at >= beside->partitions.size()) {
    return {.error = ErrorCode::unknown_topic_or_partition,
            .detail = "\"" + std::string(key) + "\" is no partition"};
  }
  auto topic = aggregate.family + to_string(beside->id);
  const auto* log = cluster.find(std::string_view(topic));
  return {.no_topic = !log || at >= log->partitions.size(),
          .beside = std::move(topic),
          .leader = beside->partitions[at].leader,
          .partition = named->partition};
}

// ---- topics ----

Task<> AggregateRouter::make_topic(const DeclaredAggregate& aggregate, std::string key) {
  auto make = [this, &aggregate, key = std::move(key)] { return create_topic(aggregate, key); };
  co_return co_await run_on(broker_.parts().environment.control(), std::move(make));
}

// [control thread]
Task<> AggregateRouter::create_topic(const DeclaredAggregate& aggregate, std::string key) {
  MR_CO_TRY(const auto pass, making_.enter());
  auto creating = aggregate.family.empty()
                      ? broker_.create_own_topic(aggregate.declaration.topic)
                      : broker_.create_beside(aggregate.family, partition_in(key)->topic);
  const auto created = co_await std::move(creating);
  if (created && created->error == ErrorCode::none) co_return {};
  const auto& topic = aggregate.declaration.topic;
  tell_not_made(topic, created ? created->message : to_string(created.error()));
  // What the disk or the coordination says is for who runs this broker.
  co_return Error{Errc::internal,
                  "its topic " + topic + " cannot be made now; the broker's log says why"};
}

// Clients ask again and again.
void AggregateRouter::tell_not_made(std::string_view topic, std::string_view reason) {
  const auto now = broker_.parts().environment.control().now();
  if (now < quiet_until_) return;
  quiet_until_ = now + quiet_after_a_line;
  broker_.parts().log.error(
      "the topic of an aggregate cannot be made; whoever needs it is told to try again",
      {{"topic", topic}, {"reason", reason}});
}

void AggregateRouter::erase_orphans() {
  auto& control = broker_.parts().environment.control();
  auto erase = [](AggregateRouter& self) -> Task<> {
    MR_CO_TRY(const auto pass, self.making_.enter());
    for (const auto& aggregate : self.declared_) {
      if (!aggregate->family.empty()) {
        MR_CO_CHECK(co_await self.broker_.erase_orphans(aggregate->family));
      }
    }
    co_return {};
  };
  const bool any =
      std::ranges::any_of(declared_, [](const auto& one) { return !one->family.empty(); });
  if (any) control.post([this, &control, erase] { spawn(control, erase(*this), "orphans"); });
}

// ---- commands ----

Call<AggregateAnswer> AggregateRouter::command(std::string_view name, std::string_view key,
                                               std::unique_ptr<Message> body) {
  const auto* aggregate = find(name);
  if (!aggregate) return answered(nobody(name));
  auto& at = here();
  auto placed = place(*aggregate, key, at);
  if (placed.no_topic) {
    auto [dispatched, when_dispatched] = make_pending<>();
    auto [done, when_done] = make_pending<AggregateAnswer>();
    auto sending = send_later(*aggregate, std::string(key), std::move(body), std::move(dispatched),
                              std::move(done));
    spawn(at.shard(), std::move(sending), "aggregate topic");
    return {std::move(when_dispatched), std::move(when_done)};
  }
  if (placed.error != ErrorCode::none) {
    return answered(refused(placed.error, std::move(placed.detail)));
  }
  if (placed.leader != broker_.config().id) {
    return answered(
        refused(ErrorCode::not_coordinator, not_here(placed.topic(), placed.partition)));
  }
  return send(*aggregate, placed, key, std::move(body));
}

Task<> AggregateRouter::send_later(const DeclaredAggregate& aggregate, std::string key,
                                   std::unique_ptr<Message> body, Resolver<> dispatched,
                                   Resolver<AggregateAnswer> done) {
  auto made = co_await make_topic(aggregate, key);
  auto placed = made ? place(aggregate, key, here()) : Place{};
  if (!made || placed.leader != broker_.config().id) {
    dispatched.resolve();
    done.resolve(refused(ErrorCode::coordinator_not_available,
                         made ? std::move(placed.detail) : std::move(made).error().detail));
    co_return {};
  }
  auto call = send(aggregate, placed, key, std::move(body));
  auto first = co_await call.dispatched;
  dispatched.resolve(std::move(first));
  auto answer = co_await call.done;
  done.resolve(std::move(answer));
  co_return {};
}

Call<AggregateAnswer> AggregateRouter::send(const DeclaredAggregate& aggregate, const Place& placed,
                                            std::string_view key, std::unique_ptr<Message> body) {
  const auto partition = placed.partition;
  auto& at = here();
  auto& home = at.shard();
  auto& owner = broker_.partitions().owner_of(placed.topic(), partition);
  auto& there = *shards_[owner.shard().index()];
  const auto reply_to = next_reply();
  auto [done, when_done] = make_pending<AggregateAnswer>();
  if (&there == &at) {
    auto* runner = at.find(aggregate, placed.topic(), partition);
    if (!runner) {
      return answered(refused(ErrorCode::not_coordinator, not_here(placed.topic(), partition)));
    }
    runner->command(key, std::move(body), reply_to, Asker(home, std::move(done)));
    return {Pending<>::ready({}), std::move(when_done)};
  }

  auto [dispatched, when_dispatched] = make_pending<>();
  // Where it is, it is known by its number alone.
  done.on_abandoned([&there, &aggregate, topic = placed.topic(), partition, reply_to] {
    there.shard().post([&there, &aggregate, topic, partition, reply_to] {
      if (auto* runner = there.find(aggregate, topic, partition)) runner->release(reply_to);
    });
  });
  there.shard().post([&there, &aggregate, topic = placed.topic(), partition, &home,
                      key = std::string(key), body = std::move(body), reply_to,
                      asker = Asker(home, std::move(done)),
                      first = std::move(dispatched)]() mutable {
    auto* runner = there.find(aggregate, topic, partition);
    if (!runner) {
      asker.refuse(there.shard(), ErrorCode::not_coordinator, not_here(topic, partition));
    } else {
      runner->command(key, std::move(body), reply_to, std::move(asker));
    }
    home.post([placed = std::move(first)]() mutable { placed.resolve(); });
  });
  return {std::move(when_dispatched), std::move(when_done)};
}

// ---- questions ----

Task<AggregateAnswer> AggregateRouter::query(std::string_view name, std::string_view key,
                                             std::unique_ptr<Message> question) {
  return query_one(std::string(name), std::string(key), std::move(question));
}

Task<AggregateAnswer> AggregateRouter::query_one(std::string name, std::string key,
                                                 std::unique_ptr<Message> question) {
  const auto* aggregate = find(name);
  if (!aggregate) co_return nobody(name);
  auto& at = here();
  auto placed = place(*aggregate, key, at);
  if (placed.no_topic) {
    co_return refused(ErrorCode::coordinator_not_available, "its topic does not exist yet");
  }
  if (placed.error != ErrorCode::none) {
    co_return refused(placed.error, std::move(placed.detail));
  }
  auto& owner = broker_.partitions().owner_of(placed.topic(), placed.partition);
  auto& there = *shards_[owner.shard().index()];
  auto [done, when_done] = make_pending<AggregateAnswer>();
  auto ask = [&there, aggregate, topic = placed.topic(), partition = placed.partition,
              key = std::move(key), question = std::move(question),
              asker = Asker(at.shard(), std::move(done))]() mutable {
    auto* runner = there.find(*aggregate, topic, partition);
    if (runner) return runner->query(key, std::move(question), std::move(asker));
    asker.refuse(there.shard(), ErrorCode::not_coordinator, not_here(topic, partition));
  };
  tell(at.shard(), there.shard(), std::move(ask));
  co_return co_await when_done;
}

Task<std::vector<AggregateAnswer>> AggregateRouter::query_all(
    std::string_view name, std::function<std::unique_ptr<Message>()> make) {
  return query_each(std::string(name), std::move(make));
}

Task<std::vector<AggregateAnswer>> AggregateRouter::query_each(
    std::string name, std::function<std::unique_ptr<Message>()> make) {
  std::vector<AggregateAnswer> answers;
  const auto* aggregate = find(name);
  if (!aggregate) co_return std::move(answers);
  Shard& home = co_await this_shard();
  CancelScope* scope = co_await this_scope();
  std::vector<Pending<std::vector<AggregateAnswer>>> asked;
  for (const auto& shard : shards_) {
    auto ask = [at = shard.get(), aggregate, make] { return query_shard(*at, *aggregate, make); };
    asked.push_back(start(home, run_on(shard->shard(), std::move(ask)), scope));
  }
  for (auto& one : asked) {
    MR_CO_TRY(auto part, co_await one);
    std::ranges::move(part, std::back_inserter(answers));
  }
  co_return std::move(answers);
}

Task<AggregateHome> AggregateRouter::home(std::string_view name, std::string_view key) {
  return find_home(std::string(name), std::string(key));
}

Task<AggregateHome> AggregateRouter::find_home(std::string name, std::string key) {
  const auto* aggregate = find(name);
  if (!aggregate) {
    auto missing = nobody(name);
    co_return AggregateHome{missing.error, std::move(missing.detail)};
  }
  auto& at = here();
  auto placed = place(*aggregate, key, at);
  if (placed.no_topic) {
    auto made = co_await make_topic(*aggregate, key);
    if (!made) {
      co_return AggregateHome{ErrorCode::coordinator_not_available, std::move(made).error().detail};
    }
    placed = place(*aggregate, key, at);
    if (placed.no_topic) placed.error = ErrorCode::coordinator_not_available;
  }
  if (placed.error == ErrorCode::none && placed.leader < 0) {
    placed.error = ErrorCode::coordinator_not_available;
    placed.detail = to_string(TopicPartition{placed.topic(), placed.partition}) + " has no leader";
  }
  co_return AggregateHome{placed.error, std::move(placed.detail), placed.leader};
}

// ---- other versions ----

Task<std::vector<AggregateFact>> AggregateRouter::list() {
  auto make = [this] { return list_all(); };
  co_return co_await run_on(broker_.parts().environment.control(), std::move(make));
}

Task<std::vector<AggregateFact>> AggregateRouter::list_all() {
  MR_CO_TRY(const auto pass, making_.enter());
  std::vector<AggregateFact> facts;
  for (const auto& aggregate : declared_) {
    const auto& version = versions_[aggregate->number];
    facts.push_back({.name = aggregate->declaration.name,
                     .topic = aggregate->declaration.topic,
                     .plugin = aggregate->plugin,
                     .version = version.version,
                     .path = version.path,
                     .starts_from = aggregate->starts_from});
  }
  for (const auto& shard : shards_) {
    auto make = [at = shard.get(), &declared = declared_] { return count_on(*at, declared); };
    MR_CO_TRY(const auto counts, co_await run_on(shard->shard(), std::move(make)));
    for (std::size_t at = 0; at < counts.size(); ++at) {
      facts[at].partitions += counts[at].partitions;
      facts[at].serving += counts[at].serving;
    }
  }
  std::ranges::sort(facts, {}, &AggregateFact::name);
  co_return std::move(facts);
}

Task<> AggregateRouter::replace(std::string name, std::string file) {
  auto make = [this, name = std::move(name), file = std::move(file)] {
    return replace_one(name, file);
  };
  co_return co_await run_on(broker_.parts().environment.control(), std::move(make));
}

Task<> AggregateRouter::replace_one(std::string name, std::string file) {
  MR_CO_TRY(const auto pass, making_.enter());
  MR_CO_TRY(const auto held, co_await replacing_.lock());
  const auto* aggregate = find(name);
  if (!aggregate) {
    std::vector<std::string> names;
    for (const auto& one : declared_) names.push_back(one->declaration.name);
    co_return Error{Errc::not_found,
                    concat("there is no aggregate ", name, nearest_hint(name, names),
                           "; running are ", names.empty() ? "none" : joined(names))};
  }
  if (!source_) co_return Error{Errc::unsupported, "aggregates are not replaced here"};
  auto loading = source_->load(aggregate->declaration, aggregate->plugin, file);
  MR_CO_TRY(auto next, co_await std::move(loading));
  auto preparing = prepare(*aggregate, next.factory);
  auto prepared = co_await std::move(preparing);
  if (!prepared) {
    auto [code, detail] = std::move(prepared).error();
    const bool unfit = code != Errc::conflict && code != Errc::closed && code != Errc::cancelled;
    co_return Error{unfit ? Errc::invalid_argument : code,
                    concat(file, ": it cannot go on from what is there: ", detail)};
  }
  auto change = [aggregate, maker = next.factory](AggregateShard& at) {
    return at.take_over(*aggregate, maker);
  };
  auto changing = on_each_shard(std::move(change));
  auto changed = co_await std::move(changing);
  broker_.parts().log.info(
      "an aggregate was replaced; a restart begins with the file of the configuration again",
      {{"aggregate", name},
       {"file", file},
       {"version", next.version},
       {"before", versions_[aggregate->number].version},
       {"starts_from", aggregate->starts_from}});
  versions_[aggregate->number] = std::move(next);
  co_return changed;
}

Task<> AggregateRouter::prepare(const DeclaredAggregate& aggregate,
                                std::shared_ptr<AggregateFactory> next) {
  auto load = [&aggregate, next](AggregateShard& at) { return at.prepare(aggregate, next); };
  auto loading = on_each_shard(std::move(load));
  auto loaded = co_await std::move(loading);
  if (loaded) co_return {};
  auto forget = [&aggregate](AggregateShard& at) { return give_up_on(at, aggregate); };
  auto forgetting = on_each_shard(std::move(forget));
  static_cast<void>(co_await std::move(forgetting));
  co_return loaded;
}

}  // namespace millrace::kernel
