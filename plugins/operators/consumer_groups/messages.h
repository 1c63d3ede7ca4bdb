// What the service tells the coordinator, and what the coordinator answers: the structs of
// <millrace/groups.h>, with what the request itself does not say (who asks).
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>

#include <millrace/aggregate.h>
#include <millrace/groups.h>

namespace millrace::consumer_groups {

/// Who is on the other end, as groups show their members.
struct ClientName {
  std::string id;
  std::string host;  ///< "/127.0.0.1", as Kafka's tools expect
};

struct Join {
  ClientName client;
  JoinGroupRequest request;
};
struct MemberHeartbeat {
  ClientName client;
  ConsumerHeartbeat request;
};
struct FetchOffsets {
  GroupOffsetsQuery request;
  bool require_stable = false;
};
struct Describe {};
struct DescribeConsumers {};
struct Remove {};

/// A command; what answers it is the struct beside it.
struct Ask final : Message {
  using Body = std::variant<Join,                 // JoinGroupAnswer
                            SyncGroupRequest,     // SyncGroupAnswer
                            GroupHeartbeat,       // ErrorCode
                            LeaveGroupRequest,    // LeaveGroupAnswer
                            MemberHeartbeat,      // ConsumerHeartbeatAnswer
                            OffsetCommitRequest,  // OffsetCommitAnswer
                            OffsetDeletion,       // OffsetsDeleted
                            FetchOffsets,         // GroupOffsets
                            Describe,             // GroupDescribed
                            DescribeConsumers,    // ConsumerGroupDescribed
                            Remove>;              // GroupDeleted

  template <class T>
    requires std::constructible_from<Body, T>
  explicit Ask(T&& content) : body(std::forward<T>(content)) {}
  Body body;
};

/// A question to every partition; answered by a GroupsListed.
struct ListQuestion final : Message {
  explicit ListQuestion(GroupFilter wanted) : filter(std::move(wanted)) {}
  GroupFilter filter;
};

template <class T>
struct Reply final : Message {
  explicit Reply(T content) : value(std::move(content)) {}
  T value;
};

/// The message as a T, which nothing is derived from; nullptr when it is another.
template <class T>
T* message_as(Message* message) noexcept {
  return message && typeid(*message) == typeid(T) ? static_cast<T*>(message) : nullptr;
}

}  // namespace millrace::consumer_groups
