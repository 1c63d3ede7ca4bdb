#include "service.h"

#include <algorithm>
#include <memory>
#include <string>

#include <millrace/utf8.h>

namespace millrace::consumer_groups {
namespace {

/// What a record's key has room for.
constexpr std::size_t id_bytes_max = 32'767;

// Bytes that are not UTF-8 become longer.
bool may_be_empty_group(std::string_view group) {
  return group.size() <= id_bytes_max / 3 || utf8_of(std::string(group)).size() <= id_bytes_max;
}
bool is_group_id(std::string_view group) { return !group.empty() && may_be_empty_group(group); }
bool fits(const std::optional<std::string>& text) { return !text || text->size() <= id_bytes_max; }

/// "/127.0.0.1": as Java writes an address that has not been looked up.
ClientName name_of(const ClientInfo& client) { return {client.client_id, "/" + client.peer.host}; }

// ---- where an answer keeps its error ----

void set_error(ErrorCode& answer, ErrorCode error, std::string /*detail*/) { answer = error; }
void set_error(OffsetCommitAnswer& answer, ErrorCode error, std::string /*detail*/) {
  for (auto& topic : answer) {
    for (auto& partition : topic.partitions) partition.error = error;
  }
}
template <class Answer>
void set_error(Answer& answer, ErrorCode error, std::string detail) {
  answer.error = error;
  if constexpr (requires { answer.message; }) answer.message = std::move(detail);
}

template <class Answer>
Answer with_error(Answer answer, ErrorCode error) {
  set_error(answer, error, {});
  return answer;
}

template <class Answer>
Reply<Answer>* reply_in(const AggregateAnswer& answer) noexcept {
  if (answer.error != ErrorCode::none) return nullptr;
  return message_as<Reply<Answer>>(answer.message.get());
}

template <class Answer>
Answer unpacked(AggregateAnswer from, Answer failed) {
  if (auto* reply = reply_in<Answer>(from)) return std::move(reply->value);
  if (from.error == ErrorCode::none) from.error = ErrorCode::unknown_server_error;
  set_error(failed, from.error, std::move(from.detail));
  return failed;
}

template <class Answer>
Task<Answer> unpack(Pending<AggregateAnswer> pending, Answer failed) {
  MR_CO_TRY(auto answer, co_await pending);
  co_return unpacked(std::move(answer), std::move(failed));
}

template <class Body>
std::string_view group_of(const Body& body) {
  return body.group;
}
std::string_view group_of(const MemberHeartbeat& body) { return body.request.group; }

template <class Answer>
Task<Answer> at_once(Answer answer) {
  co_return std::move(answer);
}

template <class Answer>
Call<Answer> answered(Answer answer) {
  return {Pending<>::ready({}), Pending<Answer>::ready(std::move(answer))};
}

}  // namespace

Shard& Service::here() const noexcept {
  for (auto* shard : environment_.shards()) {
    if (shard->is_current()) return *shard;
  }
  return environment_.control();
}

template <class Answer>
Call<Answer> Service::ask(const std::string& group, Ask::Body body, Answer failed) {
  auto call =
      aggregates_->command(aggregate_name, utf8_of(group), std::make_unique<Ask>(std::move(body)));
  auto done = start(here(), unpack(std::move(call.done), std::move(failed)));
  return {std::move(call.dispatched), std::move(done)};
}

template <class Answer, class Body>
Task<Answer> Service::ask_and_wait(Body body) {
  const auto named = group_of(body);
  const bool ascii =
      std::ranges::all_of(named, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  auto group = ascii ? std::string(named) : utf8_of(std::string(named));
  return wait_for<Answer>(std::move(group), std::make_unique<Ask>(std::move(body)));
}

template <class Answer>
Task<Answer> Service::wait_for(std::string group, std::unique_ptr<Ask> message) {
  auto call = aggregates_->command(aggregate_name, group, std::move(message));
  MR_CO_CHECK(co_await call.dispatched);
  MR_CO_TRY(auto answer, co_await call.done);
  if (auto* reply = reply_in<Answer>(answer)) co_return std::move(reply->value);
  co_return unpacked(std::move(answer), Answer{});
}

template <class Answer, class Body>
Task<std::vector<Answer>> Service::ask_each(std::vector<std::string> groups) {
  std::vector<Call<Answer>> calls;
  calls.reserve(groups.size());
  for (const auto& group : groups) {
    calls.push_back(ask(group, Body{}, Answer{.group = group}));
  }
  std::vector<Answer> answers;
  answers.reserve(calls.size());
  for (auto& call : calls) {
    MR_CO_CHECK(co_await call.dispatched);
    MR_CO_TRY(auto answer, co_await call.done);
    answers.push_back(std::move(answer));
  }
  co_return answers;
}

Task<GroupCoordinator> Service::coordinator(std::string group) {
  MR_CO_TRY(auto home, co_await aggregates_->home(aggregate_name, utf8_of(std::move(group))));
  co_return GroupCoordinator{home.error, std::move(home.detail), home.broker};
}

// ---- the classic protocol ----

Call<JoinGroupAnswer> Service::join(const ClientInfo& client, JoinGroupRequest request) {
  JoinGroupAnswer failed{.member_id = request.member_id};
  if (!is_group_id(request.group)) {
    return answered(with_error(std::move(failed), ErrorCode::invalid_group_id));
  }
  bool all_fit = fits(request.instance_id) && fits(request.protocol_type);
  for (const auto& protocol : request.protocols) all_fit = all_fit && fits(protocol.name);
  if (!all_fit) return answered(with_error(std::move(failed), ErrorCode::invalid_request));
  const auto group = request.group;
  return ask(group, Join{name_of(client), std::move(request)}, std::move(failed));
}

Call<SyncGroupAnswer> Service::sync(SyncGroupRequest request) {
  if (!is_group_id(request.group)) {
    return answered(SyncGroupAnswer{.error = ErrorCode::invalid_group_id});
  }
  const auto group = request.group;
  return ask(group, std::move(request), SyncGroupAnswer{});
}

Task<ErrorCode> Service::heartbeat(GroupHeartbeat request) {
  if (!is_group_id(request.group)) return at_once(ErrorCode::invalid_group_id);
  return ask_and_wait<ErrorCode>(std::move(request));
}

Task<LeaveGroupAnswer> Service::leave(LeaveGroupRequest request) {
  if (!is_group_id(request.group)) {
    return at_once(LeaveGroupAnswer{.error = ErrorCode::invalid_group_id});
  }
  return ask_and_wait<LeaveGroupAnswer>(std::move(request));
}

// ---- the consumer protocol ----

Task<ConsumerHeartbeatAnswer> Service::heartbeat(const ClientInfo& client,
                                                 ConsumerHeartbeat request) {
  if (!is_group_id(request.group)) {
    return at_once(ConsumerHeartbeatAnswer{.error = ErrorCode::invalid_request,
                                           .message = "GroupId can't be empty."});
  }
  return ask_and_wait<ConsumerHeartbeatAnswer>(
      MemberHeartbeat{name_of(client), std::move(request)});
}

Task<std::vector<ConsumerGroupDescribed>> Service::describe_consumer_groups(
    std::vector<std::string> groups) {
  return ask_each<ConsumerGroupDescribed, DescribeConsumers>(std::move(groups));
}

// ---- offsets ----

Call<OffsetCommitAnswer> Service::commit(const ClientInfo& /*client*/,
                                         OffsetCommitRequest request) {
  OffsetCommitAnswer failed;
  failed.reserve(request.topics.size());
  for (const auto& topic : request.topics) {
    auto& of_topic = failed.emplace_back(TopicCommitted{.topic = topic.topic});
    of_topic.partitions.reserve(topic.partitions.size());
    for (const auto& partition : topic.partitions) {
      of_topic.partitions.push_back({.partition = partition.partition});
    }
  }
  if (!may_be_empty_group(request.group)) {
    return answered(with_error(std::move(failed), ErrorCode::invalid_group_id));
  }
  const auto group = request.group;
  return ask(group, std::move(request), std::move(failed));
}

Task<std::vector<GroupOffsets>> Service::offsets(std::vector<GroupOffsetsQuery> groups,
                                                 bool require_stable) {
  std::vector<Call<GroupOffsets>> calls;
  calls.reserve(groups.size());
  for (auto& query : groups) {
    const auto group = query.group;
    calls.push_back(
        ask(group, FetchOffsets{std::move(query), require_stable}, GroupOffsets{.group = group}));
  }
  std::vector<GroupOffsets> answers;
  answers.reserve(calls.size());
  for (auto& call : calls) {
    MR_CO_CHECK(co_await call.dispatched);
    MR_CO_TRY(auto answer, co_await call.done);
    answers.push_back(std::move(answer));
  }
  co_return answers;
}

Task<OffsetsDeleted> Service::delete_offsets(OffsetDeletion request) {
  if (!is_group_id(request.group)) {
    return at_once(OffsetsDeleted{.error = ErrorCode::invalid_group_id});
  }
  return ask_and_wait<OffsetsDeleted>(std::move(request));
}

// ---- groups as a whole ----

Task<GroupsListed> Service::list(GroupFilter filter) {
  auto make = [filter = std::move(filter)]() -> std::unique_ptr<Message> {
    return std::make_unique<ListQuestion>(filter);
  };
  MR_CO_TRY(auto answers, co_await aggregates_->query_all(aggregate_name, std::move(make)));
  GroupsListed all;
  for (auto& answer : answers) {
    // One that is led elsewhere is listed there.
    if (answer.error == ErrorCode::not_coordinator) continue;
    auto listed = unpacked(std::move(answer), GroupsListed{});
    if (listed.error != ErrorCode::none) co_return GroupsListed{.error = listed.error};
    std::ranges::move(listed.groups, std::back_inserter(all.groups));
  }
  co_return all;
}

Task<std::vector<GroupDescribed>> Service::describe(std::vector<std::string> groups) {
  return ask_each<GroupDescribed, Describe>(std::move(groups));
}

Task<std::vector<GroupDeleted>> Service::remove(std::vector<std::string> groups) {
  return ask_each<GroupDeleted, Remove>(std::move(groups));
}

}  // namespace millrace::consumer_groups
