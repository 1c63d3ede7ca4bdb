#include "kernel/cli/cluster_client.h"

#include <iostream>

#include <millrace/kafka/metadata.h>
#include <millrace/utf8.h>

#include "kernel/cli/output.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

TopicInfo info_of(const kafka::MetadataResponse::Topic& topic) {
  TopicInfo info{.error = ErrorCode{topic.error_code},
                 .topic = {std::string(topic.name.value_or("")), topic.topic_id},
                 .internal = topic.is_internal,
                 .partitions = {}};
  for (const auto& partition : topic.partitions) {
    info.partitions.push_back({.partition = partition.partition_index,
                               .error = ErrorCode{partition.error_code},
                               .leader = partition.leader_id,
                               .leader_epoch = Epoch{partition.leader_epoch},
                               .replicas = partition.replica_nodes,
                               .in_sync = partition.isr_nodes,
                               .offline = partition.offline_replicas});
  }
  std::ranges::sort(info.partitions, {}, &PartitionInfo::partition);
  return info;
}

// Longer than what a broker may take for what it is asked for (30 s).
constexpr Duration answer_within = std::chrono::seconds(40);
constexpr Duration connect_within = std::chrono::seconds(10);

std::string_view what_to_try(Errc code) {
  switch (code) {
    case Errc::timed_out: return "does it hang, or is a firewall between?";
    case Errc::not_found: return "is the name right?";
    case Errc::closed:
    case Errc::too_large:
    case Errc::corrupt: return "is that the Kafka port of a broker, and without TLS?";
    default: return "is it running, and does it listen there?";
  }
}

/// Who answers nothing is named, with how long it was tried and what may be the matter.
Task<std::unique_ptr<kafka::Client>> reach(Network& network, Address address, std::string who) {
  auto& shard = co_await this_shard();
  const auto began = shard.now();
  auto where = to_string(address);
  auto connecting = with_deadline(
      kafka::Client::connect(network, std::move(address), {.answer_within = answer_within}),
      connect_within);
  auto client = co_await std::move(connecting);
  if (client) co_return std::move(client);
  const auto code = client.error().code;
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(shard.now() - began).count();
  const auto limit = connect_within / std::chrono::seconds(1);
  const auto why = code == Errc::timed_out
                       ? "no answer for " + std::to_string(limit) + " s"
                       : client.error().detail + ", after " + std::to_string(took) + " ms";
  // Whatever it is, no broker answers there.
  // That one is nobody else's.
  const bool our_limit = why.contains("Too many open files");
  const auto hint = our_limit ? "this shell allows that few; see ulimit -n" : what_to_try(code);
  co_return Error{code == Errc::timed_out || code == Errc::closed ? code : Errc::io,
                  "no " + who + " at " + shown(where) + ": " + why + "; " + std::string(hint)};
}

}  // namespace

Error error_of(ErrorCode code, std::string_view what) {
  auto errc = Errc::internal;
  if (code == ErrorCode::unknown_topic_or_partition || code == ErrorCode::unknown_topic_id ||
      code == ErrorCode::group_id_not_found) {
    errc = Errc::not_found;
  } else if (code == ErrorCode::topic_already_exists || code == ErrorCode::non_empty_group) {
    errc = Errc::conflict;
  } else if (is_retriable(code) || code == ErrorCode::broker_not_available) {
    errc = Errc::overloaded;
  } else {
    errc = Errc::invalid_argument;
  }
  return Error{errc, std::string(name_of(code)) + ": " + std::string(what)};
}

Error no_such_partition(std::string_view option, const TopicInfo& topic, std::int32_t number) {
  return {Errc::out_of_range,
          concat(option, " ", number, ": topic ", in_quotes(topic.topic.name),
                 " has partitions 0 to ", static_cast<std::int64_t>(topic.partitions.size()) - 1)};
}

Task<std::unique_ptr<ClusterClient>> ClusterClient::connect(Network& network,
                                                            std::string bootstrap) {
  // Several with commas between them, as Kafka's tools take them: the first that answers.
  std::vector<Address> addresses;
  for (std::string_view left = bootstrap;;) {
    const auto comma = left.find(',');
    auto address = parse_address(left.substr(0, comma));
    if (!address) {
      co_return Error{Errc::invalid_argument, "--bootstrap: " + address.error().detail};
    }
    addresses.push_back(*std::move(address));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  std::vector<std::string> failures;
  auto code = Errc::io;
  for (const auto& address : addresses) {
    auto reaching = reach(network, address, "broker");
    auto client = co_await std::move(reaching);
    if (client) {
      co_return std::unique_ptr<ClusterClient>(
          new ClusterClient(network, *std::move(client), std::move(addresses)));
    }
    code = client.error().code;
    failures.push_back(std::move(client.error().detail));
  }
  co_return Error{code, joined(failures, " ") + " Another one is named with --bootstrap HOST:PORT"};
}

// Those that we were told of first: the one that was asked may be the one that has gone.
Task<> ClusterClient::reconnect() {
  std::vector<Address> addresses;
  for (const auto& [id, address] : brokers_) addresses.push_back(address);
  addresses.insert(addresses.end(), bootstrap_.begin(), bootstrap_.end());
  Error why{Errc::closed, "there is no broker"};
  for (const auto& address : addresses) {
    auto reaching = reach(network_, address, "broker");
    auto client = co_await std::move(reaching);
    if (client) {
      // Another caller may have been quicker, and be asking already.
      if (!any_->status()) any_ = *std::move(client);
      co_return {};
    }
    why = client.error();
  }
  co_return why;
}

Task<MetadataAnswer> ClusterClient::metadata(std::optional<std::vector<std::string>> topics) {
  if (!any_->status()) MR_CO_CHECK(co_await reconnect());
  kafka::MetadataRequest request;
  request.allow_auto_topic_creation = false;
  if (topics) {
    auto& wanted = request.topics.emplace();
    for (const auto& name : *topics) {
      kafka::MetadataRequest::Topic topic;
      topic.name = name;
      wanted.push_back(std::move(topic));
    }
  } else {
    request.topics.reset();
  }
  MR_CO_TRY(const auto answer, co_await any_->call(std::move(request)));
  MetadataAnswer result{.brokers = {},
                        .cluster_id = std::string(answer.cluster_id.value_or("")),
                        .controller_id = answer.controller_id,
                        .topics = {}};
  for (const auto& broker : answer.brokers) {
    Address address{std::string(broker.host), static_cast<std::uint16_t>(broker.port)};
    brokers_[broker.node_id] = address;
    result.brokers.push_back(
        {broker.node_id, std::move(address), std::string(broker.rack.value_or(""))});
  }
  for (const auto& topic : answer.topics) result.topics.push_back(info_of(topic));
  std::ranges::sort(result.topics, {}, [](const TopicInfo& topic) { return topic.topic.name; });
  co_return std::move(result);
}

Task<TopicInfo> ClusterClient::topic(std::string name) {
  std::vector<std::string> names{name};
  Wait wait("a leader of topic " + in_quotes(name));
  auto code = ErrorCode::none;
  auto what = "topic " + in_quotes(name);
  while (true) {
    MR_CO_TRY(auto answer, co_await metadata(names));
    code =
        answer.topics.empty() ? ErrorCode::unknown_topic_or_partition : answer.topics.front().error;
    if (code == ErrorCode::none) co_return std::move(answer.topics.front());
    // One that has just been made.
    if (code != ErrorCode::leader_not_available) break;
    MR_CO_CHECK(co_await next_try(wait, error_of(code, what)));
  }
  if (code == ErrorCode::unknown_topic_or_partition) {
    const auto all = co_await metadata(std::nullopt);
    std::vector<std::string> known;
    if (all) {
      for (const auto& one : all->topics) known.push_back(one.topic.name);
    }
    what += nearest_hint(name, known);
  }
  co_return error_of(code, what);
}

Task<kafka::Client*> ClusterClient::broker(std::int32_t id) {
  const auto found = connected_.find(id);
  if (found != connected_.end()) co_return found->second.get();
  const auto known = brokers_.find(id);
  if (known == brokers_.end()) {
    co_return error_of(ErrorCode::broker_not_available, "broker " + std::to_string(id));
  }
  auto address = known->second;
  auto reaching = reach(network_, std::move(address), "broker " + std::to_string(id));
  auto client = co_await std::move(reaching);
  if (!client) {
    co_return Error{client.error().code, client.error().detail +
                                             " The cluster says that it is there: what brokers "
                                             "advertise must be reachable from here"};
  }
  co_return connected_.emplace(id, *std::move(client)).first->second.get();
}

Task<kafka::Client*> ClusterClient::find_controller() {
  MR_CO_TRY(const auto answer, co_await metadata(std::vector<std::string>()));
  controller_id_ = answer.controller_id;
  if (!brokers_.contains(controller_id_)) {
    co_return error_of(ErrorCode::broker_not_available,
                       "the cluster has no controller now; one is elected within the session "
                       "time-out");
  }
  co_return co_await broker(controller_id_);
}

Task<> ClusterClient::next_try(Wait& wait, Error why) {
  const bool passes = why.code == Errc::closed || why.code == Errc::io ||
                      why.code == Errc::timed_out || why.code == Errc::overloaded;
  if (!passes) co_return why;
  const auto now = (co_await this_shard()).now();
  if (!wait.until) {
    wait.until = now + wait_max;
    const auto told = concat("waiting up to ", wait_max / std::chrono::seconds(1), " s for ",
                             wait.whom, " that answers: ", why.detail);
    if (waits_) {
      waits_(told);
    } else {
      std::cerr << "millrace: " << told << '\n' << std::flush;
    }
  } else if (now >= *wait.until) {
    co_return Error{Errc::timed_out, wait.whom + " that answers was waited for in vain, " +
                                         std::to_string(wait_max / std::chrono::seconds(1)) +
                                         " s: " + why.detail};
  }
  co_return co_await sleep(std::chrono::milliseconds(250));
}

Task<kafka::Client*> ClusterClient::leader_of(PartitionInfo partition) {
  if (!brokers_.contains(partition.leader)) {
    co_return error_of(ErrorCode::leader_not_available,
                       "partition " + std::to_string(partition.partition) + " has no leader now");
  }
  co_return co_await broker(partition.leader);
}

bool ClusterClient::moves(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::not_leader_or_follower:
    case ErrorCode::leader_not_available:
    case ErrorCode::fenced_leader_epoch:
    case ErrorCode::unknown_leader_epoch:
    case ErrorCode::replica_not_available:
    case ErrorCode::broker_not_available:
    case ErrorCode::listener_not_found:
    case ErrorCode::offset_not_available:
    // Of a topic that was just made, or is gone, which partitions() tells.
    case ErrorCode::unknown_topic_or_partition:
    case ErrorCode::unknown_topic_id:
    case ErrorCode::inconsistent_topic_id: return true;
    default: return false;
  }
}

bool ClusterClient::passes(ErrorCode code, Again again) noexcept {
  if (moves(code)) return true;
  switch (code) {
    case ErrorCode::not_enough_replicas_after_append:
    case ErrorCode::request_timed_out:
    case ErrorCode::network_exception:
    case ErrorCode::kafka_storage_error: return again == Again::always;
    // What is damaged stays so.
    case ErrorCode::corrupt_message: return false;
    default: return is_retriable(code);
  }
}

bool ClusterClient::is_for_later(ErrorCode code) noexcept {
  return code == ErrorCode::not_controller || code == ErrorCode::broker_not_available ||
         code == ErrorCode::throttling_quota_exceeded;
}

Error ClusterClient::passing(ErrorCode code, std::string_view what) {
  return {Errc::overloaded, error_of(code, what).detail};
}

void ClusterClient::drop_if_dead(std::int32_t broker) {
  const auto found = connected_.find(broker);
  if (found != connected_.end() && !found->second->status()) connected_.erase(found);
}

Task<std::vector<PartitionInfo>> ClusterClient::partitions(TopicName topic) {
  std::vector<std::string> names{topic.name};
  auto answer = co_await metadata(std::move(names));
  if (!answer && answer.error().code == Errc::cancelled) co_return answer.error();
  if (!answer || answer->topics.empty()) co_return std::vector<PartitionInfo>();
  auto& info = answer->topics.front();
  if (info.error == ErrorCode::unknown_topic_or_partition) {
    co_return error_of(info.error, "topic " + in_quotes(topic.name) + " is gone");
  }
  // Brokers before 2.8 know no ids.
  if (!topic.id.is_none() && !info.topic.id.is_none() && info.topic.id != topic.id) {
    co_return error_of(ErrorCode::unknown_topic_id,
                       "topic " + in_quotes(topic.name) + " is gone; another one has its name now");
  }
  co_return std::move(info.partitions);
}

Task<> ClusterClient::renew(TopicName topic, PartitionInfo& partition) {
  MR_CO_TRY(const auto told, co_await partitions(std::move(topic)));
  const auto found = std::ranges::find(told, partition.partition, &PartitionInfo::partition);
  if (found != told.end()) partition = *found;
  co_return {};
}

}  // namespace millrace::kernel::cli
