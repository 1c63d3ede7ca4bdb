// The groups of one partition of __consumer_offsets, as an aggregate: every command names a group,
// the log's records are Kafka's, and the state is what they make of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include <millrace/aggregate.h>

#include "group.h"
#include "messages.h"
#include "monitor.h"
#include "retention.h"
#include "settings.h"
#include "topics_in_use.h"
#include "turn.h"

namespace millrace::consumer_groups {

class Coordinator final : public PartitionAggregate {
 public:
  explicit Coordinator(Monitor& monitor) : monitor_(monitor) {}
  ~Coordinator() override;

  void decide(Command& command, Context& context) override;
  Result<> evolve(const RecordView& event, const EventInfo& info) override;
  Result<std::unique_ptr<Message>> query(std::string_view key,
                                         const Message& question) const override;
  void end_transaction(std::int64_t producer_id, std::int16_t producer_epoch, bool commit,
                       const EventInfo& info) override;
  void loaded(Context& context) override;
  void timer(std::string_view name, Context& context) override;
  void cluster_changed(Context& context) override;
  Result<> snapshot(SnapshotWriter& out) const override;
  Result<> restore(SnapshotReader& in) override;

 private:
  Group* find(std::string_view id);
  Group& find_or_make(std::string_view id);
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };
  using Groups = std::unordered_map<std::string, Group, TextHash, std::equal_to<>>;

  Turn turn_in(Context& context) { return {context, settings_.at(context), monitor_}; }
  /// Forgets a group that neither a record nor a member needs.
  void drop_if_gone(std::string_view id);
  bool drop_if_gone(Group& group);
  /// The same after a call that may have changed the group, which is counted.
  void settle(std::string_view id, Turn& turn);

  // ---- one for each command ----
  void on(Join& ask, std::string_view key, ReplyTo to, Turn& turn);
  void on(SyncGroupRequest& ask, std::string_view key, ReplyTo to, Turn& turn);
  void on(GroupHeartbeat& ask, std::string_view key, ReplyTo to, Turn& turn);
  void on(LeaveGroupRequest& ask, std::string_view key, ReplyTo to, Turn& turn);
  void on(MemberHeartbeat& ask, std::string_view key, ReplyTo to, Turn& turn);
  void on(OffsetCommitRequest& ask, std::string_view key, ReplyTo to, Turn& turn);
  void on(OffsetDeletion& ask, std::string_view key, ReplyTo to, Turn& turn);
  void on(FetchOffsets& ask, std::string_view key, ReplyTo to, Turn& turn);
  void on(Describe& ask, std::string_view key, ReplyTo to, Turn& turn);
  void on(DescribeConsumers& ask, std::string_view key, ReplyTo to, Turn& turn);
  void on(Remove& ask, std::string_view key, ReplyTo to, Turn& turn);

  // ---- events ----
  Result<> evolve_offset(const RecordView& event, const EventInfo& info);
  Result<> evolve_membership(RecordKind kind, const RecordView& event, const EventInfo& info);

  // ---- retention ----
  void expire_offsets(Turn& turn);
  void look_for_deleted_topics(Turn& turn);
  void drop_deleted_topics(Turn& turn);

  Monitor& monitor_;
  Groups groups_;
  Group* last_ = nullptr;  ///< whom find() has found: a call asks for one group, several times
  TopicsInUse topics_;
  /// Groups with offsets of a transaction that has not ended, by producer id.
  std::map<std::int64_t, std::set<std::string>> open_transactions_;
  SettingsCache settings_;
  std::int64_t cluster_seen_ = -1;
  DeletedTopics deleted_topics_;  ///< whose offsets are still to be dropped
  Offset last_event_;
};

}  // namespace millrace::consumer_groups
