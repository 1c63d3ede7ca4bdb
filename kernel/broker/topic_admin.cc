#include "kernel/broker/topic_admin.h"

#include "kernel/broker/topic_info.h"
#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"
#include "kernel/partition/topic_config.h"

namespace millrace::kernel {

namespace {

struct OpenRequest {
  BrokerParts& parts;
  ShardState& owner;
  TopicPartition id;
  TopicConfig config;
  Uuid topic_id;
  Epoch leader_epoch;
};

Task<Recovery> open_on(OpenRequest request) {
  PartitionHost host{request.parts.environment, request.owner.shard(), request.parts.storage,
                     request.parts.codecs,      request.parts.log,     request.owner.opening()};
  MR_CO_TRY(auto partition,
            co_await Partition::open(std::move(host), std::move(request.id), request.topic_id,
                                     request.config, request.leader_epoch));
  const auto recovery = partition->recovery();
  request.owner.add(std::move(partition));
  co_return recovery;
}

Task<> abandon_on(ShardState& owner, TopicPartition id) {
  const auto partition = owner.take(id);
  if (!partition) co_return {};
  co_return co_await partition->abandon();
}

std::int32_t partitions_of(const TopicState& topic) {
  return static_cast<std::int32_t>(topic.partitions.size());
}

std::vector<TopicPartition> ids_from(std::int32_t first, const TopicState& topic) {
  std::vector<TopicPartition> ids;
  for (auto at = first; at < partitions_of(topic); ++at) ids.push_back({topic.name, at});
  return ids;
}

}  // namespace

std::vector<Pending<Recovery>> TopicAdmin::begin_opening(const TopicState& topic,
                                                         std::int32_t first) {
  for (const auto& problem : topic_config_problems(topic.configs)) {
    parts_.log.warning("a stored setting of a topic cannot be used; what it would inherit counts",
                       {{"topic", topic.name}, {"problem", problem.detail}});
  }
  const ConfigSources sources(config_, cluster_.state());
  const auto config = TopicConfig::load(sources.merged(), topic.configs);
  std::vector<Pending<Recovery>> opening;
  for (const auto& id : ids_from(first, topic)) {
    auto& owner = partitions_.owner_of(id.topic, id.partition);
    const auto epoch = topic.partitions[static_cast<std::size_t>(id.partition)].leader_epoch;
    OpenRequest request{parts_, owner, id, config, topic.id, epoch};
    auto make = [request] { return open_on(request); };
    opening.push_back(start(parts_.environment.control(), run_on(owner.shard(), std::move(make))));
  }
  return opening;
}

Task<Recovery> TopicAdmin::open(std::shared_ptr<const TopicState> topic, std::int32_t first) {
  auto opening = begin_opening(*topic, first);
  Result<Recovery> total = Recovery{};
  for (auto& one : opening) {
    auto opened = co_await one;
    if (!total) continue;  // the first failure is what is reported
    if (opened) {
      total->offsets_checked += opened->offsets_checked;
      total->bytes_cut += opened->bytes_cut;
    } else {
      total = std::move(opened);
    }
  }
  co_return total;
}

Task<Recovery> TopicAdmin::open_known(std::shared_ptr<const TopicState> topic) {
  auto opening = begin_opening(*topic, 0);
  auto known = *topic;
  Recovery total;
  bool all_open = true;
  for (std::size_t at = 0; at < opening.size(); ++at) {
    const auto id = to_string(TopicPartition{topic->name, static_cast<std::int32_t>(at)});
    const auto opened = co_await opening[at];
    if (!opened) {
      parts_.log.error("a partition cannot be opened and stays offline; mend it and start again",
                       {{"partition", id}, {"error", to_string(opened.error())}});
      known.partitions[at].leader = -1;
      all_open = false;
      continue;
    }
    if (opened->created) {
      parts_.log.warning(
          "the log of a known topic is missing; it begins anew, empty. If it was not just being "
          "created, stop the broker and bring its folder back from a copy",
          {{"partition", id}});
    }
    total.offsets_checked += opened->offsets_checked;
    total.bytes_cut += opened->bytes_cut;
  }
  if (!all_open) cluster_.state().put(std::move(known));
  co_return total;
}

Task<> TopicAdmin::abandon(std::shared_ptr<const TopicState> topic, std::int32_t first) {
  const auto ids = ids_from(first, *topic);
  std::vector<Pending<>> ending;
  for (const auto& id : ids) {
    auto& owner = partitions_.owner_of(id.topic, id.partition);
    auto make = [&owner, id] { return abandon_on(owner, id); };
    ending.push_back(start(parts_.environment.control(), run_on(owner.shard(), std::move(make))));
  }
  for (std::size_t at = 0; at < ids.size(); ++at) {
    const auto closed = co_await ending[at];
    if (closed) continue;
    parts_.log.warning("a partition that is being deleted did not close cleanly",
                       {{"partition", to_string(ids[at])}, {"error", to_string(closed.error())}});
  }
  co_return {};
}

// A log that another topic of this name has left, when metadata was lost, stays.
Task<> TopicAdmin::remove_logs(std::shared_ptr<const TopicState> topic, std::int32_t first) {
  MR_CO_TRY(const auto logs, co_await parts_.storage.list());
  std::vector<Pending<>> removing;
  for (const auto& log : logs) {
    if (log.partition.topic != topic->name || log.partition.partition < first) continue;
    if (!log.topic_id.is_none() && log.topic_id != topic->id) continue;
    auto task = parts_.storage.remove(log.partition);
    removing.push_back(start(parts_.environment.control(), std::move(task)));
  }
  Result<> first_failure;
  for (auto& one : removing) {
    auto removed = co_await one;
    if (removed || removed.error().code == Errc::not_found) continue;
    if (first_failure) first_failure = std::move(removed);
  }
  co_return first_failure;
}

// The last two steps of a deletion, which a start repeats if a crash came between them.
Task<> TopicAdmin::remove(std::shared_ptr<const TopicState> topic) {
  MR_CO_CHECK(co_await remove_logs(topic));
  co_return co_await erase_topic(parts_.coordination, *topic);
}

Task<> TopicAdmin::finish_deletions() {
  MR_CO_TRY(const auto names,
            co_await parts_.coordination.list(std::string(znodes::delete_topics)));
  for (const auto& name : names) {
    const auto found = cluster_.state().topics.find(name);
    if (found == cluster_.state().topics.end()) continue;
    const auto topic = found->second;
    cluster_.state().remove(name);
    MR_CO_CHECK(co_await remove(topic));
    parts_.log.info("finished a deletion that the last stop had interrupted", {{"topic", name}});
  }
  co_return {};
}

// An answer may be of thousands of topics: without what no client is sent, and one list for all
// that have nothing of their own.
std::shared_ptr<const std::vector<ConfigEntry>> TopicAdmin::describe_new(
    const ConfigMap& overrides, const ConfigSources& sources) {
  if (overrides.empty() && plain_made_for_ == sources.merged()) {
    if (auto plain = plain_configs_.lock()) return plain;
  }
  auto entries = sources.describe_topic(overrides);
  for (auto& entry : entries) {
    entry.synonyms = {};
    entry.documentation = {};
  }
  auto described = std::make_shared<const std::vector<ConfigEntry>>(std::move(entries));
  if (overrides.empty()) {
    plain_configs_ = described;
    plain_made_for_ = sources.merged();
  }
  return described;
}

Task<TopicCreated> TopicAdmin::create(NewTopic wanted, bool validate_only) {
  MR_CO_TRY(const auto turn, co_await cluster_.turn());
  TopicCreated created{.name = wanted.name, .message = {}, .configs = {}};
  const ConfigSources sources(config_, cluster_.state());
  auto planned =
      plan_topic(wanted, cluster_.state(), sources.merged(), parts_.environment.random());
  if (planned.refusal) {
    created.error = planned.refusal->error;
    created.message = planned.refusal->message;
    co_return std::move(created);
  }
  created.partitions = static_cast<std::int32_t>(planned.topic.partitions.size());
  created.replication_factor =
      static_cast<std::int16_t>(planned.topic.partitions.front().replicas.size());
  created.configs = describe_new(planned.topic.configs, sources);
  created.id = planned.topic.id;
  if (validate_only) co_return std::move(created);

  const auto topic = std::make_shared<const TopicState>(planned.topic);
  MR_CO_CHECK(
      co_await write_topic(parts_.coordination, planned.topic, cluster_.controller_epoch()));
  auto opened = co_await open(topic);
  if (!opened) {
    created.error = error_code_of(opened.error());
    created.message = opened.error().detail;
    parts_.log.error("a new topic could not be opened; its creation is taken back",
                     {{"topic", topic->name}, {"error", to_string(opened.error())}});
    MR_CO_CHECK(co_await abandon(topic));
    MR_CO_CHECK(co_await remove(topic));
    co_return std::move(created);
  }
  cluster_.state().put(std::move(planned.topic));
  MR_CO_CHECK(co_await cluster_.publish());
  parts_.log.info("topic created", {{"topic", topic->name}, {"partitions", created.partitions}});
  co_return std::move(created);
}

Task<TopicGrown> TopicAdmin::grow(TopicGrowth wanted, bool validate_only) {
  MR_CO_TRY(const auto turn, co_await cluster_.turn());
  TopicGrown grown{.name = wanted.name, .message = {}};
  auto planned = plan_growth(wanted, cluster_.state());
  if (planned.refusal) {
    grown.error = planned.refusal->error;
    grown.message = planned.refusal->message;
  }
  if (planned.refusal || validate_only) co_return std::move(grown);

  const auto before = cluster_.state().topics.find(wanted.name)->second;
  const auto topic = std::make_shared<const TopicState>(std::move(planned.topic));
  const auto first = partitions_of(*before);
  MR_CO_CHECK(
      co_await write_growth(parts_.coordination, *topic, first, cluster_.controller_epoch()));
  auto opened = co_await open(topic, first);
  if (!opened) {
    grown.error = error_code_of(opened.error());
    grown.message = opened.error().detail;
    parts_.log.error("new partitions could not be opened; they are taken back",
                     {{"topic", topic->name}, {"error", to_string(opened.error())}});
    MR_CO_CHECK(co_await abandon(topic, first));
    MR_CO_CHECK(co_await remove_logs(topic, first));
    MR_CO_CHECK(co_await undo_growth(parts_.coordination, *before, partitions_of(*topic)));
    co_return std::move(grown);
  }
  cluster_.state().put(*topic);
  MR_CO_CHECK(co_await cluster_.publish());
  parts_.log.info("topic grown", {{"topic", topic->name}, {"partitions", partitions_of(*topic)}});
  co_return std::move(grown);
}

Task<TopicDeleted> TopicAdmin::erase(TopicName name) {
  MR_CO_TRY(const auto turn, co_await cluster_.turn());
  TopicDeleted deleted{.topic = name, .message = {}};
  const auto* known = cluster_.state().find(name);
  if (!known) {
    deleted.error = why_unknown(name);
    deleted.message = deleted.error == ErrorCode::unknown_topic_id
                          ? "This server does not host this topic ID."
                          : "This server does not host this topic-partition.";
    co_return std::move(deleted);
  }
  deleted.topic = {known->name, known->id};
  if (config_.default_of("delete.topic.enable", "true") != "true") {
    deleted.error = ErrorCode::topic_deletion_disabled;
    deleted.message = "delete.topic.enable is false.";
    co_return std::move(deleted);
  }
  if (const auto kept = kept_.find(known->name); kept != kept_.end()) {
    deleted.error = ErrorCode::topic_deletion_disabled;
    deleted.message = kept->second;
    co_return std::move(deleted);
  }
  const auto topic = cluster_.state().topics.find(known->name)->second;
  std::vector<Write> marks;
  marks.push_back({.key = znodes::delete_topic(topic->name), .value = ""});
  MR_CO_CHECK(co_await parts_.coordination.commit(std::move(marks)));
  cluster_.state().remove(topic->name);
  MR_CO_CHECK(co_await cluster_.publish());
  MR_CO_CHECK(co_await abandon(topic));
  MR_CO_CHECK(co_await remove(topic));
  parts_.log.info("topic deleted", {{"topic", topic->name}});
  co_return std::move(deleted);
}

}  // namespace millrace::kernel
