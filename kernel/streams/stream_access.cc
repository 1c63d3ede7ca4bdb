#include "kernel/streams/stream_access.h"

#include <utility>
#include <vector>

#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

// Beside what a request itself allows.
constexpr Duration answer_limit = std::chrono::seconds(10);
// Sources that several brokers lead: nobody is woken by what comes at another one.
constexpr Duration shared_wait_max = std::chrono::milliseconds(250);

FetchAnswer unreachable(const FetchRequest& request) {
  FetchAnswer answer;
  for (const auto& topic : request.topics) {
    auto& failed = answer.topics.emplace_back(TopicFetched{topic.topic, {}});
    for (const auto& asked : topic.partitions) {
      failed.partitions.push_back(
          {.partition = asked.partition, .error = ErrorCode::leader_not_available});
    }
  }
  return answer;
}

ProduceAnswer unreachable(const std::vector<TopicRecords>& topics, const std::string& why) {
  ProduceAnswer answer;
  for (const auto& topic : topics) {
    auto& failed = answer.topics.emplace_back(TopicProduced{topic.topic, {}});
    for (const auto& asked : topic.partitions) {
      failed.partitions.push_back({.partition = asked.partition,
                                   .error = ErrorCode::leader_not_available,
                                   .message = why,
                                   .record_errors = {}});
    }
  }
  return answer;
}

/// The part of a request that one broker answers, without its topics.
FetchRequest head_of(const FetchRequest& request) {
  return {.wait_max = request.wait_max,
          .bytes_min = request.bytes_min,
          .bytes_max = request.bytes_max,
          .isolation = request.isolation,
          .by_topic_id = request.by_topic_id,
          .rack = {},
          .topics = {},
          .forgotten = {}};
}

/// Waits for all, also after a failure: they use what is their caller's.
template <class Answer>
Task<Answer> joined(std::vector<Pending<Answer>> asked) {
  Answer answer;
  Result<> failure;
  for (auto& one : asked) {
    auto part = co_await one;
    if (!part) {
      if (failure) failure = std::move(part).error();
      continue;
    }
    for (auto& topic : part->topics) answer.topics.push_back(std::move(topic));
  }
  MR_CO_CHECK(std::move(failure));
  co_return std::move(answer);
}

bool of_connection(const Error& error) { return error.code != Errc::cancelled; }

}  // namespace

StreamAccess::StreamAccess(StreamParts& parts, std::string_view stream)
    : parts_(parts),
      session_(parts.broker.open_session(
          {.client_id = concat("stream-", stream), .software = {}, .peer = {}, .listener = {}})) {}

const ClusterState* StreamAccess::cluster() const {
  return parts_.partitions.here().cluster().get();
}

StreamAccess::BrokerId StreamAccess::leader_of(const TopicState* topic,
                                               std::int32_t partition) const {
  const auto at = static_cast<std::size_t>(partition);
  if (!parts_.links->peers || !topic || partition < 0 || at >= topic->partitions.size()) {
    return here();
  }
  const auto leader = topic->partitions[at].leader;
  return leader < 0 ? here() : leader;
}

Address StreamAccess::address_of(BrokerId broker) const {
  const auto* known = cluster();
  if (!known) return {};
  const auto found = known->brokers.find(broker);
  if (found == known->brokers.end()) return {};
  return kernel::address_of(found->second, parts_.links->listener);
}

template <class Link, class P>
Task<std::shared_ptr<P>> StreamAccess::connected(Link* link,
                                                 std::map<BrokerId, std::shared_ptr<P>>& known,
                                                 BrokerId broker) {
  if (const auto found = known.find(broker); found != known.end()) co_return found->second;
  if (!link) co_return Error{Errc::unsupported, "no transport reaches other brokers"};
  auto address = address_of(broker);
  if (address.host.empty()) {
    co_return Error{Errc::not_found, concat("broker ", broker, " tells no address")};
  }
  auto connecting = with_deadline(link->connect(std::move(address)), answer_limit);
  MR_CO_TRY(auto made, co_await std::move(connecting));
  std::shared_ptr<P> peer = std::move(made);
  known.insert_or_assign(broker, peer);
  co_return std::move(peer);
}

// ---- fetch ----

Task<FetchAnswer> StreamAccess::fetch(FetchRequest request) {
  std::map<BrokerId, FetchRequest> parts;
  for (auto& topic : request.topics) {
    const auto* known = cluster() ? cluster()->find(topic.topic) : nullptr;
    const auto broker = leader_of(known, topic.partitions.at(0).partition);
    parts.try_emplace(broker, head_of(request)).first->second.topics.push_back(std::move(topic));
  }
  if (parts.size() == 1) {
    auto& [broker, all] = *parts.begin();
    auto asking = fetch_at(broker, std::move(all));
    co_return co_await std::move(asking);
  }
  Shard& shard = co_await this_shard();
  CancelScope* scope = co_await this_scope();
  std::vector<Pending<FetchAnswer>> asked;
  for (auto& [broker, part] : parts) {
    part.wait_max = std::min(part.wait_max, shared_wait_max);
    asked.push_back(millrace::start(shard, fetch_at(broker, std::move(part)), scope));
  }
  auto joining = joined(std::move(asked));
  co_return co_await std::move(joining);
}

Task<FetchAnswer> StreamAccess::fetch_at(BrokerId broker, FetchRequest request) {
  return broker == here() ? fetch_here(std::move(request)) : fetch_from(broker, std::move(request));
}

Task<FetchAnswer> StreamAccess::fetch_here(FetchRequest request) {
  auto call = parts_.broker.fetch(*session_, std::move(request));
  MR_CO_CHECK(co_await std::move(call.dispatched));
  co_return co_await std::move(call.done);
}

Task<FetchAnswer> StreamAccess::fetch_from(BrokerId broker, FetchRequest request) {
  auto connecting = connected(parts_.links->peers, readers_, broker);
  const auto peer = co_await std::move(connecting);
  if (!peer) {
    if (!of_connection(peer.error())) co_return peer.error();
    co_return unreachable(request);
  }
  auto asking = with_deadline((*peer)->fetch(request), request.wait_max + answer_limit);
  auto answer = co_await std::move(asking);
  if (answer) co_return std::move(answer);
  if (!of_connection(answer.error())) co_return std::move(answer);
  readers_.erase(broker);
  co_return unreachable(request);
}

// ---- produce ----

Task<ProduceAnswer> StreamAccess::produce(ProduceRequest request) {
  std::map<BrokerId, ProduceRequest> parts;
  for (auto& topic : request.topics) {
    const auto* known = cluster() ? cluster()->find(topic.topic) : nullptr;
    for (auto& records : topic.partitions) {
      auto& part = parts[leader_of(known, records.partition)];
      if (part.topics.empty() || part.topics.back().topic.name != topic.topic.name) {
        part.topics.push_back(
            {{topic.topic.name, known ? known->id : Uuid{}}, {}});  // by which is the peer's choice
      }
      part.topics.back().partitions.push_back(std::move(records));
    }
  }
  Shard& shard = co_await this_shard();
  CancelScope* scope = co_await this_scope();
  std::vector<Pending<ProduceAnswer>> asked;
  for (auto& [broker, part] : parts) {
    part.acks = request.acks;
    part.timeout = request.timeout;
    asked.push_back(millrace::start(shard, produce_at(broker, std::move(part)), scope));
  }
  auto joining = joined(std::move(asked));
  co_return co_await std::move(joining);
}

Task<ProduceAnswer> StreamAccess::produce_at(BrokerId broker, ProduceRequest request) {
  return broker == here() ? produce_here(std::move(request))
                          : produce_to(broker, std::move(request));
}

Task<ProduceAnswer> StreamAccess::produce_here(ProduceRequest request) {
  for (auto& topic : request.topics) topic.topic.id = {};
  auto call = parts_.broker.produce(*session_, std::move(request));
  MR_CO_CHECK(co_await std::move(call.dispatched));
  co_return co_await std::move(call.done);
}

// Whether what is not answered was written is not known: it is sent again as it is.
Task<ProduceAnswer> StreamAccess::produce_to(BrokerId broker, ProduceRequest request) {
  const auto topics = request.topics;
  auto connecting = connected(parts_.links->records, writers_, broker);
  const auto peer = co_await std::move(connecting);
  if (!peer) {
    if (!of_connection(peer.error())) co_return peer.error();
    co_return unreachable(topics, to_string(peer.error()));
  }
  const auto limit = request.timeout + answer_limit;
  auto asking = with_deadline((*peer)->produce(std::move(request)), limit);
  auto answer = co_await std::move(asking);
  if (!answer) {
    if (!of_connection(answer.error())) co_return std::move(answer);
    writers_.erase(broker);
    co_return unreachable(topics, to_string(answer.error()));
  }
  // In the order of the request; by id alone, maybe.
  for (std::size_t at = 0; at < std::min(topics.size(), answer->topics.size()); ++at) {
    answer->topics[at].topic = topics[at].topic;
  }
  co_return std::move(answer);
}

// ---- offsets ----

Task<PartitionOffsetFound> StreamAccess::list_offset(std::string topic,
                                                     PartitionOffsetQuery query) {
  const auto* known = cluster() ? cluster()->find(std::string_view(topic)) : nullptr;
  const auto broker = leader_of(known, query.partition);
  ListOffsetsRequest request{.isolation = Isolation::read_committed, .topics = {}};
  request.topics.push_back({std::move(topic), {query}});
  auto asking = broker == here() ? parts_.broker.list_offsets(*session_, std::move(request))
                                 : list_from(broker, std::move(request));
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  if (answer.topics.empty() || answer.topics[0].partitions.empty()) {
    co_return Error{Errc::corrupt, "an answer without what was asked for"};
  }
  co_return answer.topics[0].partitions[0];
}

Task<ListOffsetsAnswer> StreamAccess::list_from(BrokerId broker, ListOffsetsRequest request) {
  auto connecting = connected(parts_.links->records, writers_, broker);
  MR_CO_TRY(const auto peer, co_await std::move(connecting));
  auto asking = with_deadline(peer->list_offsets(std::move(request)), answer_limit);
  auto answer = co_await std::move(asking);
  if (!answer) writers_.erase(broker);
  co_return std::move(answer);
}

}  // namespace millrace::kernel
