#include "sim_members.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <millrace/kafka/consumer_group_heartbeat.h>
#include <millrace/kafka/heartbeat.h>
#include <millrace/kafka/join_group.h>
#include <millrace/kafka/leave_group.h>
#include <millrace/kafka/offset_commit.h>
#include <millrace/kafka/offset_fetch.h>
#include <millrace/kafka/sync_group.h>

#include "sim_client.h"

namespace millrace::testing {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int32_t session_ms = 10'000;
constexpr std::int32_t rebalance_ms = 15'000;
constexpr Duration beat_interval = seconds(1);
constexpr Duration again_after = milliseconds(200);
/// A JoinGroup waits for the others.
constexpr Duration call_max = seconds(60);

}  // namespace

// ---- what is seen ----

void GroupsSeen::owns(const std::string& group, std::int32_t generation, std::int32_t partition,
                      const std::string& member) {
  const auto [known, first] = owners_.try_emplace({group, generation, partition}, member);
  if (first || known->second == member) return;
  faults_.push_back(group + " in " + std::to_string(generation) + ": partition " +
                    std::to_string(partition) + " is of " + known->second + " and of " + member);
}

void GroupsSeen::sent(const std::string& group, std::int32_t partition, std::int64_t offset) {
  commits_[{group, partition}].possible.insert(offset);
}

void GroupsSeen::acknowledged(const std::string& group, std::int32_t partition,
                              std::int64_t offset) {
  auto& commits = commits_[{group, partition}];
  commits.acknowledged = std::max(commits.acknowledged, offset);
  ++acknowledged_count_;
}

void GroupsSeen::refused(const std::string& group, std::int32_t partition, std::int64_t offset) {
  commits_[{group, partition}].possible.erase(offset);
}

void GroupsSeen::check(const std::string& group, std::int32_t partition, std::int64_t offset) {
  const auto& commits = commits_[{group, partition}];
  if (offset >= commits.acknowledged && (offset == -1 || commits.possible.contains(offset))) return;
  faults_.push_back(group + ", partition " + std::to_string(partition) + ": " +
                    std::to_string(offset) + " is committed, and " +
                    std::to_string(commits.acknowledged) + " was acknowledged");
}

// ---- any member ----

SimMember::SimMember(Parts parts, std::string group, std::string name)
    : parts_(parts), group_(std::move(group)), name_(std::move(name)) {}

Task<> SimMember::live() {
  while (!ending_) {
    const auto went = co_await step();
    if (!went) MR_CO_CHECK(co_await sleep(again_after));
  }
  if (leaving_) static_cast<void>(co_await say_goodbye());
  owned_.clear();
  client_.reset();
  ended_ = true;
  co_return {};
}

template <class Request>
Task<typename Request::Response> SimMember::call(Request request) {
  if (!client_) {
    MR_CO_TRY(client_, co_await connect_to(parts_.home.network(), "b1"));
  }
  auto calling = with_deadline(client_->call(std::move(request)), call_max);
  auto answer = co_await std::move(calling);
  if (!answer) client_.reset();
  co_return std::move(answer);
}

Task<ErrorCode> SimMember::commit_one() {
  if (owned_.empty()) co_return ErrorCode::none;
  const auto partition =
      *std::next(owned_.begin(), static_cast<std::ptrdiff_t>(parts_.random.below(owned_.size())));
  const auto offset = parts_.seen.next_offset();
  kafka::OffsetCommitRequest request;
  request.group_id = group_;
  request.generation_id_or_member_epoch = generation();
  request.member_id = id_;
  auto& topic = request.topics.emplace_back();
  topic.name = parts_.topic.name;
  topic.topic_id = parts_.topic.id;
  auto& commit = topic.partitions.emplace_back();
  commit.partition_index = partition;
  commit.committed_offset = offset;
  parts_.seen.sent(group_, partition, offset);
  MR_CO_TRY(const auto answer, co_await call(std::move(request)));
  const ErrorCode error{answer.topics.at(0).partitions.at(0).error_code};
  if (error == ErrorCode::none) {
    parts_.seen.acknowledged(group_, partition, offset);
  } else if (error != ErrorCode::coordinator_not_available) {
    parts_.seen.refused(group_, partition, offset);
  }
  co_return error;
}

// ---- the classic protocol ----

namespace {

class ClassicMember final : public SimMember {
 public:
  using SimMember::SimMember;

 private:
  enum class Doing { joining, syncing, consuming };

  std::int32_t generation() const noexcept override { return generation_; }

  Task<> step() override {
    switch (doing_) {
      case Doing::joining: return join();
      case Doing::syncing: return sync();
      case Doing::consuming: return consume();
    }
    return join();
  }

  /// What every answer may say: go on, join again, or begin anew.
  Result<> follow(ErrorCode error) {
    switch (error) {
      case ErrorCode::none: return {};
      case ErrorCode::unknown_member_id:
      case ErrorCode::illegal_generation: id_.clear(); [[fallthrough]];
      case ErrorCode::rebalance_in_progress:
        doing_ = Doing::joining;
        owned_.clear();
        return {};
      default: return Error{Errc::closed, std::string(name_of(error))};  // of a coordinator
    }
  }

  Task<> join() {
    kafka::JoinGroupRequest request;
    request.group_id = group_;
    request.session_timeout_ms = session_ms;
    request.rebalance_timeout_ms = rebalance_ms;
    request.member_id = id_;
    request.protocol_type = "sim";
    request.protocols.push_back({"even", Buffer::copy_of(name_)});
    MR_CO_TRY(const auto answer, co_await call(std::move(request)));
    const ErrorCode error{answer.error_code};
    if (error == ErrorCode::member_id_required) {
      id_ = answer.member_id;
      co_return {};
    }
    if (error != ErrorCode::none) co_return follow(error);
    id_ = answer.member_id;
    generation_ = answer.generation_id;
    assignments_.clear();
    if (answer.leader == id_) {
      for (std::int32_t partition = 0; partition < parts_.topic.partitions; ++partition) {
        const auto& owner =
            answer.members[static_cast<std::size_t>(partition) % answer.members.size()];
        assignments_[std::string(owner.member_id)] += std::to_string(partition) + ',';
      }
    }
    doing_ = Doing::syncing;
    co_return {};
  }

  Task<> sync() {
    kafka::SyncGroupRequest request;
    request.group_id = group_;
    request.generation_id = generation_;
    request.member_id = id_;
    request.protocol_type = "sim";
    request.protocol_name = "even";
    for (const auto& [member, partitions] : assignments_) {
      request.assignments.push_back({member, Buffer::copy_of(partitions)});
    }
    MR_CO_TRY(const auto answer, co_await call(std::move(request)));
    const ErrorCode error{answer.error_code};
    if (error != ErrorCode::none) co_return follow(error);
    doing_ = Doing::consuming;
    const auto text = answer.assignment.text();
    for (std::size_t at = 0; at < text.size(); at = text.find(',', at) + 1) {
      std::int32_t partition = -1;
      std::from_chars(text.data() + at, text.data() + text.size(), partition);
      owned_.insert(partition);
      parts_.seen.owns(group_, generation_, partition, id_);
    }
    co_return {};
  }

  Task<> consume() {
    if (parts_.random.one_in(3)) {
      MR_CO_TRY(const auto error, co_await commit_one());
      if (error != ErrorCode::none) co_return follow(error);
    }
    MR_CO_CHECK(co_await sleep(beat_interval));
    kafka::HeartbeatRequest request;
    request.group_id = group_;
    request.generation_id = generation_;
    request.member_id = id_;
    MR_CO_TRY(const auto answer, co_await call(std::move(request)));
    co_return follow(ErrorCode{answer.error_code});
  }

  Task<> say_goodbye() override {
    kafka::LeaveGroupRequest request;
    request.group_id = group_;
    request.member_id = id_;
    request.members.emplace_back().member_id = id_;
    MR_CO_CHECK(co_await call(std::move(request)));
    co_return {};
  }

  Doing doing_ = Doing::joining;
  std::int32_t generation_ = -1;
  std::map<std::string, std::string> assignments_;  // of the leader
};

// ---- the consumer protocol ----

class ConsumerMember final : public SimMember {
 public:
  ConsumerMember(Parts parts, std::string group, std::string name)
      : SimMember(parts, std::move(group), std::move(name)) {
    id_ = group_ + "/" + name_;
  }

 private:
  std::int32_t generation() const noexcept override { return epoch_; }

  Task<> step() override {
    if (epoch_ > 0) {
      if (parts_.random.one_in(3)) {
        const auto committed = co_await commit_one();
        if (!committed) co_return committed.error();
      }
      MR_CO_CHECK(co_await sleep(beat_interval));
    }
    kafka::ConsumerGroupHeartbeatRequest request;
    request.group_id = group_;
    request.member_id = id_;
    request.member_epoch = epoch_;
    if (epoch_ == 0) {
      request.rebalance_timeout_ms = rebalance_ms;
      request.subscribed_topic_names.emplace().emplace_back(parts_.topic.name);
    }
    auto& owned = request.topic_partitions.emplace();
    if (!owned_.empty()) {
      owned.push_back({parts_.topic.id, {owned_.begin(), owned_.end()}});
    }
    MR_CO_TRY(const auto answer, co_await call(std::move(request)));
    switch (const ErrorCode error{answer.error_code}) {
      case ErrorCode::none: break;
      case ErrorCode::unknown_member_id:
      case ErrorCode::group_id_not_found:
      case ErrorCode::fenced_member_epoch:
        epoch_ = 0;
        owned_.clear();
        co_return {};
      default: co_return Error{Errc::closed, std::string(name_of(error))};
    }
    epoch_ = answer.member_epoch;
    if (answer.assignment) {
      owned_.clear();
      for (const auto& topic : answer.assignment->topic_partitions) {
        owned_.insert(topic.partitions.begin(), topic.partitions.end());
      }
    }
    for (const auto partition : owned_) parts_.seen.owns(group_, epoch_, partition, id_);
    co_return {};
  }

  Task<> say_goodbye() override {
    kafka::ConsumerGroupHeartbeatRequest request;
    request.group_id = group_;
    request.member_id = id_;
    request.member_epoch = -1;
    MR_CO_CHECK(co_await call(std::move(request)));
    co_return {};
  }

  std::int32_t epoch_ = 0;
};

}  // namespace

std::unique_ptr<SimMember> make_classic_member(SimMember::Parts parts, std::string group,
                                               std::string name) {
  return std::make_unique<ClassicMember>(parts, std::move(group), std::move(name));
}

std::unique_ptr<SimMember> make_consumer_member(SimMember::Parts parts, std::string group,
                                                std::string name) {
  return std::make_unique<ConsumerMember>(parts, std::move(group), std::move(name));
}

// ---- offsets ----

Task<std::map<std::int32_t, std::int64_t>> committed_offsets(Network& network, std::string group) {
  while (true) {
    MR_CO_TRY(auto client, co_await connect_to(network, "b1"));
    kafka::OffsetFetchRequest request;
    auto& wanted = request.groups.emplace_back();
    wanted.group_id = group;
    wanted.topics.reset();
    MR_CO_TRY(const auto answer, co_await client->call(std::move(request)));
    const auto& told = answer.groups.at(0);
    const ErrorCode error{told.error_code};
    if (error == ErrorCode::none) {
      std::map<std::int32_t, std::int64_t> offsets;
      for (const auto& topic : told.topics) {
        for (const auto& one : topic.partitions) {
          offsets[one.partition_index] = one.committed_offset;
        }
      }
      co_return std::move(offsets);
    }
    if (!is_retriable(error)) co_return Error{Errc::internal, std::string(name_of(error))};
    MR_CO_CHECK(co_await sleep(again_after));
  }
}

}  // namespace millrace::testing
