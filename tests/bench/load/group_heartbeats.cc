// Members of many groups that have settled and only say that they live, each in its turn, every
// three seconds. They share a few connections, so that it is the groups that cost; and nobody
// sleeps on an answer: to wake somebody on the same machine is no work of a broker whose members
// are on others, and would be counted as the broker's.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <string_view>
#include <thread>

#include <millrace/bytes.h>
#include <millrace/error_code.h>
#include <millrace/kafka/codec.h>
#include <millrace/kafka/consumer_group_heartbeat.h>
#include <millrace/kafka/find_coordinator.h>
#include <millrace/kafka/heartbeat.h>
#include <millrace/kafka/join_group.h>
#include <millrace/kafka/offset_fetch.h>
#include <millrace/kafka/sync_group.h>

#include "load.h"
#include "socket.h"

namespace millrace::bench {
namespace {

using namespace std::string_view_literals;

constexpr int members_per_group = 10;
constexpr auto heartbeat_interval = std::chrono::seconds(3);
constexpr auto tick = std::chrono::milliseconds(10);
constexpr std::int32_t session_ms = 30'000;

constexpr std::int16_t find_version = 1;
constexpr std::int16_t fetch_version = 5;
constexpr std::int16_t join_version = 3;  // the last that lets a new member in at once
constexpr std::int16_t sync_version = 3;
constexpr std::int16_t heartbeat_version = 3;
constexpr std::int16_t consumer_version = 1;

template <class T>
T need(Result<T> result) {
  if (!result) throw LoadFailed(to_string(result.error()));
  return *std::move(result);
}

void check(std::int16_t error, const char* what) {
  if (error != 0) {
    throw LoadFailed(std::string(what) + ": " + std::string(name_of(ErrorCode{error})));
  }
}

template <class Request>
Buffer frame_of(const Request& request, std::int16_t version) {
  return flat(need(kafka::encode_request(1, "bench", version, request)));
}

template <class Request>
typename Request::Response answer_to(Socket& socket, std::int16_t version) {
  return need(
      kafka::decode_response<typename Request::Response>(socket.receive_frame(), version, 1));
}

template <class Request>
typename Request::Response ask(Socket& socket, const Request& request, std::int16_t version) {
  socket.send(frame_of(request, version));
  return answer_to<Request>(socket, version);
}

bool is_starting(std::int16_t code) {
  const ErrorCode error{code};
  return error == ErrorCode::coordinator_not_available ||
         error == ErrorCode::coordinator_load_in_progress || error == ErrorCode::not_coordinator;
}

/// The first group makes the topic that groups are kept in, whose partitions are then loaded.
void wait_for_coordinator(Socket& socket, const std::string& group) {
  kafka::FindCoordinatorRequest find;
  find.key = group;
  kafka::OffsetFetchRequest fetch;
  fetch.group_id = group;
  const auto deadline = Clock::now() + std::chrono::seconds(30);
  while (is_starting(ask(socket, find, find_version).error_code) ||
         is_starting(ask(socket, fetch, fetch_version).error_code)) {
    if (Clock::now() > deadline) throw LoadFailed("no coordinator");
  }
}

struct Member {
  Socket* socket;
  Buffer heartbeat;  ///< made once: what it says does not change any more
};

/// All members of one group join within its initial delay.
void send_joins(Socket& socket, const std::string& group) {
  kafka::JoinGroupRequest join;
  join.group_id = group;
  join.session_timeout_ms = session_ms;
  join.rebalance_timeout_ms = session_ms;
  join.protocol_type = "consumer";
  join.protocols.push_back({"range", Buffer::copy_of("\0\0\0\0\0\0\xff\xff\xff\xff"sv)});
  const auto frame = frame_of(join, join_version);
  for (int at = 0; at < members_per_group; ++at) socket.send(frame);
}

using Joined = std::vector<kafka::JoinGroupResponse>;

/// Takes the answers to send_joins(), and says who gets what: nothing.
Joined send_syncs(Socket& socket, const std::string& group) {
  Joined joined;
  for (int at = 0; at < members_per_group; ++at) {
    joined.push_back(answer_to<kafka::JoinGroupRequest>(socket, join_version));
    check(joined.back().error_code, "joining");
  }
  for (const auto& one : joined) {
    kafka::SyncGroupRequest sync;
    sync.group_id = group;
    sync.generation_id = one.generation_id;
    sync.member_id = one.member_id;
    if (one.member_id == one.leader) {
      for (const auto& member : one.members) sync.assignments.push_back({member.member_id, {}});
    }
    socket.send(frame_of(sync, sync_version));
  }
  return joined;
}

void settle(Socket& socket, const std::string& group, const Joined& joined,
            std::vector<Member>& members) {
  for (const auto& one : joined) {
    check(answer_to<kafka::SyncGroupRequest>(socket, sync_version).error_code, "synchronising");
    kafka::HeartbeatRequest heartbeat;
    heartbeat.group_id = group;
    heartbeat.generation_id = one.generation_id;
    heartbeat.member_id = one.member_id;
    members.push_back({&socket, frame_of(heartbeat, heartbeat_version)});
  }
}

/// Members of the protocol of KIP-848. The topic has a partition for each.
class ConsumerGroup {
 public:
  ConsumerGroup(Socket& socket, std::string name, std::string_view topic)
      : socket_(socket), name_(std::move(name)), topic_(topic), states_(members_per_group) {
    for (std::size_t at = 0; at < states_.size(); ++at) {
      states_[at].id = name_ + "-" + std::to_string(at);
    }
  }

  bool is_settled() const {
    return std::ranges::all_of(states_, [&](const State& state) {
      return !state.told && state.owned.size() == 1 && state.owned[0].partitions.size() == 1 &&
             state.epoch == states_.front().epoch;
    });
  }
  void beat() {
    for (auto& state : states_) beat(state);
  }
  void add_to(std::vector<Member>& members) const {
    for (const auto& state : states_) {
      kafka::ConsumerGroupHeartbeatRequest request;
      request.group_id = name_;
      request.member_id = state.id;
      request.member_epoch = state.epoch;
      members.push_back({&socket_, frame_of(request, consumer_version)});
    }
  }

 private:
  struct State {
    std::string id;
    std::int32_t epoch = 0;
    std::vector<kafka::ConsumerGroupHeartbeatRequest::TopicPartitions> owned;
    bool told = true;  ///< something new, the last time
  };

  void beat(State& state) {
    kafka::ConsumerGroupHeartbeatRequest request;
    request.group_id = name_;
    request.member_id = state.id;
    request.member_epoch = state.epoch;
    if (state.epoch == 0) {
      request.rebalance_timeout_ms = session_ms;
      request.subscribed_topic_names.emplace().emplace_back(topic_);
    }
    request.topic_partitions = state.owned;
    const auto answer = ask(socket_, request, consumer_version);
    check(answer.error_code, "a heartbeat");
    state.told = answer.assignment.has_value() || answer.member_epoch != state.epoch;
    state.epoch = answer.member_epoch;
    if (!answer.assignment) return;
    state.owned.clear();
    for (const auto& has : answer.assignment->topic_partitions) {
      state.owned.push_back({has.topic_id, has.partitions});
    }
  }

  Socket& socket_;
  std::string name_;
  std::string_view topic_;
  std::vector<State> states_;
};

/// Groups are assigned anew at most once in a while, so they settle beside each other.
void settle_consumers(std::deque<ConsumerGroup>& groups) {
  const auto deadline = Clock::now() + std::chrono::seconds(120);
  while (true) {
    bool settled = true;
    for (auto& group : groups) {
      if (group.is_settled()) continue;
      group.beat();
      settled = settled && group.is_settled();
    }
    if (settled) return;
    if (Clock::now() > deadline) throw LoadFailed("groups do not settle");
  }
}

std::vector<Member> make_members(const Load& load, bool consumers, std::deque<Socket>& sockets) {
  for (int at = 0; at < load.connections; ++at) sockets.emplace_back(load.address);
  std::vector<Member> members;
  const auto socket_of = [&](int group) -> Socket& {
    return sockets[static_cast<std::size_t>(group % load.connections)];
  };
  const auto name = [](int group) { return "group-" + std::to_string(group); };
  const int groups = static_cast<int>(load.messages) / members_per_group;
  for (int group = 0; group < groups; ++group) wait_for_coordinator(socket_of(group), name(group));
  if (consumers) {
    std::deque<ConsumerGroup> all;
    for (int group = 0; group < groups; ++group) {
      all.emplace_back(socket_of(group), name(group), load.topic);
    }
    settle_consumers(all);
    for (const auto& group : all) group.add_to(members);
    return members;
  }
  // Answers come in the order of requests, so each step is taken by all groups before the next.
  std::vector<Joined> joined;
  for (int group = 0; group < groups; ++group) send_joins(socket_of(group), name(group));
  for (int group = 0; group < groups; ++group) {
    joined.push_back(send_syncs(socket_of(group), name(group)));
  }
  for (int group = 0; group < groups; ++group) {
    settle(socket_of(group), name(group), joined[static_cast<std::size_t>(group)], members);
  }
  return members;
}

/// The error of an answer stands behind the correlation id, a tag buffer where the version is
/// flexible, and the throttle time.
void check_heartbeat(const Buffer& answer, bool consumers) {
  check(load_be<std::int16_t>(answer.data() + 8 + (consumers ? 1 : 0)), "a heartbeat");
}

Figures beat(const Load& load, bool consumers) {
  std::deque<Socket> sockets;
  const auto members = make_members(load, consumers, sockets);
  std::printf("ready\n");
  std::fflush(stdout);

  Figures figures;
  const auto started = Clock::now();
  const auto end = started + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(load.seconds));
  std::size_t sent = 0;
  std::vector<Socket*> asked;
  const auto take_answers = [&] {
    for (auto* socket : asked) check_heartbeat(socket->receive_frame(), consumers);
    figures.messages += static_cast<std::int64_t>(asked.size());
    asked.clear();
  };
  for (auto now = started; now < end; now = Clock::now()) {
    const auto due = static_cast<std::size_t>(
        static_cast<double>(members.size()) * ((now - started) / std::chrono::duration<double>(1)) /
        std::chrono::duration<double>(heartbeat_interval).count());
    take_answers();  // which have come since
    for (; sent < due; ++sent) {
      // From one connection to the next, as members of their own would come.
      const auto& member = members[sent * 7919 % members.size()];
      member.socket->send(member.heartbeat);
      asked.push_back(member.socket);
    }
    std::this_thread::sleep_until(now + tick);
  }
  take_answers();
  figures.seconds = std::chrono::duration<double>(Clock::now() - started).count();
  return figures;
}

}  // namespace

Figures classic_heartbeats(const Load& load) { return beat(load, false); }
Figures consumer_heartbeats(const Load& load) { return beat(load, true); }

}  // namespace millrace::bench
