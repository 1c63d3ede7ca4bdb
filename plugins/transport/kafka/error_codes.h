// The error codes of an answer, wherever they stand in it.
#pragma once

#include <optional>
#include <vector>

#include <millrace/error_code.h>

namespace millrace::kafka_transport {

template <class Message, class F>
void for_each_error(const Message& message, F& found);

template <class Message, class F>
void for_each_error(const std::vector<Message>& messages, F& found) {
  for (const auto& message : messages) for_each_error(message, found);
}
template <class Message, class F>
void for_each_error(const std::optional<std::vector<Message>>& messages, F& found) {
  if (messages) for_each_error(*messages, found);
}

/// Calls `found(ErrorCode)` for every code that is not `none`, of the answer as a whole, of its
/// topics, of their partitions, of groups and their members: under whatever name the lists go in
/// the protocol.
template <class Message, class F>
void for_each_error(const Message& message, F& found) {
  if constexpr (requires { message.error_code; }) {
    if (message.error_code != 0) found(static_cast<ErrorCode>(message.error_code));
  }
  if constexpr (requires { message.topics; }) for_each_error(message.topics, found);
  if constexpr (requires { message.partitions; }) for_each_error(message.partitions, found);
  if constexpr (requires { message.responses; }) for_each_error(message.responses, found);
  if constexpr (requires { message.partition_responses; }) {
    for_each_error(message.partition_responses, found);
  }
  if constexpr (requires { message.results; }) for_each_error(message.results, found);
  if constexpr (requires { message.coordinators; }) for_each_error(message.coordinators, found);
  if constexpr (requires { message.groups; }) for_each_error(message.groups, found);
  if constexpr (requires { message.members; }) for_each_error(message.members, found);
}

}  // namespace millrace::kafka_transport
