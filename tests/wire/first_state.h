// What the recorded broker held before a session began, as far as its answers tell, and a live
// broker brought to the same state.
//
//   * A topic that an answer knows, and that the session did not create, was there, with as many
//     partitions as answers name.
//   * The first answer to a produce tells where the log ended before; without one, high watermarks
//     and answers about offsets do.
//   * Records that a fetch brought and the session did not write were there as they stand; other
//     offsets below the end held something, and get a record that says so.
//   * Settings that a topic has from its broker are the broker's.
//   * A set of records refused for its size, or for the keys it lacks, tells of a topic's settings.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bindings.h"
#include "live_broker.h"
#include "session.h"

namespace millrace::wire {

struct PartitionState {
  std::int64_t end = 0;
  /// V2 batches and message sets V0 and V1, by the offset of their first record.
  std::map<std::int64_t, Buffer> records;
  std::map<std::int64_t, std::int64_t> timestamps;  ///< of single offsets
};

struct TopicState {
  std::string id;                                     ///< "" where no answer tells it
  std::map<std::int32_t, PartitionState> partitions;  ///< 0..n-1
  std::map<std::string, std::string> settings;
};

struct CommittedState {
  std::int64_t offset = -1;
  std::int32_t leader_epoch = -1;
  std::string metadata;
};

/// A group that nobody is a member of any more.
struct GroupState {
  std::string type;           ///< "classic" or "consumer"; "" where no answer tells it
  std::string protocol_type;  ///< "" where nobody ever was
  std::map<TopicPartition, CommittedState> committed;
};

struct FirstState {
  std::int32_t broker_id = 1;
  std::map<std::string, std::string> settings;  ///< of the broker
  std::map<std::string, TopicState> topics;
  std::map<std::string, GroupState> groups;
  std::set<std::string> named_groups;  ///< that requests are about: their coordinators serve
};

FirstState read_first_state(const Session& session);

/// Creates the topics, writes their records, and lets groups come and go; the topics' ids are the
/// first that are bound.
/// Errc::unsupported where the broker cannot be told.
Result<Bindings> establish(const FirstState& state, const Address& broker,
                           const ServedApis& served);

/// The part of it for groups.
Result<> establish_groups(const FirstState& state, Link& link);

}  // namespace millrace::wire
