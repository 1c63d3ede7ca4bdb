// A group of the consumer protocol (KIP-848) as its records make it. Nothing in here decides.
//
// Three kinds of epochs, each of which only grows: that of the group counts changes of members,
// subscriptions and topics; the target assignment has the epoch of the group that it was computed
// for; and each member has the epoch of the target that it has reached.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/result.h>

#include "../records.h"
#include "consumer_settings.h"
#include "member.h"
#include "shared.h"

namespace millrace::consumer_groups {

/// The topics that a regular expression has matched.
struct ResolvedRegex {
  std::vector<std::string> topics;  ///< sorted
  std::int64_t version = 0;         ///< of the cluster's topics, as the broker of that time counted
  std::int64_t timestamp = 0;
};

/// A record on its way to the log.
struct GroupRecord {
  Buffer key;
  std::optional<Buffer> value;  ///< none: a tombstone
};

/// A copy is cheap, and shares with the original what neither changes: decisions are drafted on
/// copies.  [partition's shard]
class ConsumerGroup {
 public:
  explicit ConsumerGroup(std::string id)
      : id_(std::move(id)), time_names_(std::make_shared<const GroupTimeNames>(id_)) {}

  const std::string& id() const noexcept { return id_; }
  const GroupTimeNames& time_names() const noexcept { return *time_names_; }
  std::int32_t epoch() const noexcept { return epoch_; }
  std::int64_t metadata_hash() const noexcept { return metadata_hash_; }
  std::int32_t assignment_epoch() const noexcept { return assignment_epoch_; }
  /// 0: the next assignment need not wait.
  std::int64_t assignment_timestamp() const noexcept { return assignment_timestamp_; }
  /// A record of Kafka 3 with the topics' partitions, in place of which there is a hash now.
  bool has_partition_metadata() const noexcept { return has_partition_metadata_; }

  using Members = std::map<std::string, Shared<ConsumerMember>, std::less<>>;
  const Members& members() const noexcept { return *members_; }
  const ConsumerMember* find(std::string_view member_id) const;
  const ConsumerMember* find_instance(std::string_view instance_id) const;
  /// nullptr: none was ever computed for this member.
  const Assignment* target(std::string_view member_id) const;

  using Regexes = std::map<std::string, ResolvedRegex, std::less<>>;
  const Regexes& resolved() const noexcept { return resolved_; }
  std::size_t members_with_regex(std::string_view regex) const;
  std::size_t classic_members() const;

  /// Who has the partition or is yet to give it up; empty: nobody.
  std::string_view owner(const Uuid& topic, std::int32_t partition) const;

  /// Has no record left.
  bool forgotten() const noexcept { return !recorded_ && members_->empty(); }

  /// A record of this group. Errc::corrupt: it is not what Kafka writes.
  Result<> apply(RecordKind kind, Bytes key, const std::optional<Bytes>& value);
  Result<> apply(const GroupRecord& record);
  /// Records from which apply() makes this group.
  Result<std::vector<GroupRecord>> records() const;

 private:
  Result<> apply_metadata(const std::optional<Bytes>& value);
  Result<> apply_member(Bytes key, const std::optional<Bytes>& value);
  Result<> apply_target_metadata(const std::optional<Bytes>& value);
  Result<> apply_target_member(Bytes key, const std::optional<Bytes>& value);
  Result<> apply_current(Bytes key, const std::optional<Bytes>& value);
  Result<> apply_regex(Bytes key, const std::optional<Bytes>& value);
  ConsumerMember& member(std::string_view id);
  void remove_member(std::string_view id);
  void set_current(ConsumerMember& member, CurrentAssignment current);

  std::string id_;
  std::shared_ptr<const GroupTimeNames> time_names_;
  bool recorded_ = false;
  std::int32_t epoch_ = 0;
  std::int64_t metadata_hash_ = 0;
  std::int32_t assignment_epoch_ = 0;
  std::int64_t assignment_timestamp_ = 0;
  bool has_partition_metadata_ = false;
  Shared<Members> members_;
  std::map<std::string, std::string, std::less<>> instances_;  // instance id -> member id
  Shared<std::map<std::string, Shared<Assignment>, std::less<>>> targets_;
  using Owners = std::map<Uuid, std::map<std::int32_t, std::string>>;
  static void release(Owners& owners, const ConsumerMember& member, const Owned& owned);
  static void take(Owners& owners, const ConsumerMember& member, const Owned& owned);
  Shared<Owners> owners_;
  Regexes resolved_;
};

}  // namespace millrace::consumer_groups
