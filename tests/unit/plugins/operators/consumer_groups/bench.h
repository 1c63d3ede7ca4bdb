// A coordinator without a broker, and clients of its groups that say what real ones say.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/testing/aggregate_driver.h>
#include <millrace/testing/fake_host.h>

#include "plugins/operators/consumer_groups/coordinator.h"
#include "plugins/operators/consumer_groups/messages.h"

namespace millrace::consumer_groups::testing {

using namespace std::chrono_literals;
using millrace::testing::AggregateDriver;
using millrace::testing::KeptLog;
using millrace::testing::KeptMetrics;

class Factory final : public AggregateFactory {
 public:
  explicit Factory(Monitor& monitor) : monitor_(monitor) {}
  AggregateDeclaration declaration() const override {
    return {.name = "consumer_groups", .topic = "__consumer_offsets"};
  }
  std::unique_ptr<PartitionAggregate> make(const TopicPartition& /*partition*/) override {
    return std::make_unique<Coordinator>(monitor_);
  }

 private:
  Monitor& monitor_;
};

/// The bytes of a consumer's subscription.
Buffer subscription(const std::vector<std::string_view>& topics);

/// What a client knows of its membership.
struct Client {
  std::string group = "g";
  std::string client_id = "c";
  std::string member_id;
  std::optional<std::string> instance_id;
  std::int32_t generation = -1;
  std::string leader;
  Duration session = 10s;
  Duration rebalance = 60s;
  std::string type = "consumer";
  std::vector<GroupProtocol> protocols{{"range", subscription({"orders"})}};
  bool known_id = true;         ///< JoinGroup 4 on
  bool skip_assignment = true;  ///< JoinGroup 9 on

  bool leads() const { return !member_id.empty() && leader == member_id; }
};

/// One coordinator with topics "orders" (4 partitions) and "bills" (2).
class Bench : public ::testing::Test {
 public:
  Bench();
  /// Whatever a test has done: the log makes the same state again.
  void TearDown() override;

  ReplyTo send(const std::string& group, Ask::Body body);
  /// What a command is answered at once.
  template <class Answer>
  Answer ask(const std::string& group, Ask::Body body) {
    return taken<Answer>(send(group, std::move(body)));
  }
  template <class Answer>
  Answer taken(ReplyTo token) {
    const auto* reply = driver.answer_as<Reply<Answer>>(token);
    if (!reply) {
      ADD_FAILURE() << (driver.waits(token)
                            ? "no answer yet"
                            : "error " + std::to_string(static_cast<int>(driver.error(token))));
      return {};
    }
    return reply->value;
  }
  bool waits(ReplyTo token) const { return driver.waits(token); }

  // ---- requests of a client ----
  ReplyTo send_join(const Client& client);
  /// JoinGroup, with the member id that a first one is told.
  ReplyTo begin_join(Client& client);
  /// Takes what a JoinGroup was answered into the client.
  JoinGroupAnswer end_join(Client& client, ReplyTo token);
  ReplyTo send_sync(const Client& client, std::vector<GroupAssignment> assignments = {});
  ErrorCode heartbeat(const Client& client);
  LeaveGroupAnswer leave(const Client& client);
  OffsetCommitAnswer commit(const Client& client, std::int64_t offset,
                            const std::string& topic = "orders", std::int32_t partition = 0);
  ErrorCode commit_error(const Client& client, std::int64_t offset,
                         const std::string& topic = "orders", std::int32_t partition = 0);
  GroupOffsets offsets(const std::string& group, bool require_stable = false);
  /// -1: none.
  std::int64_t offset_of(const std::string& group, const std::string& topic = "orders",
                         std::int32_t partition = 0);
  std::vector<GroupListed> list(GroupFilter filter = {});
  GroupDescribed describe(const std::string& group);

  /// A stable group of these; the first leads, and assigns "for NAME" to each client id.
  void make_stable(const std::vector<Client*>& clients);
  /// All of them join again (they are asked to) and sync.
  void rebalance(const std::vector<Client*>& clients);
  /// The leader among them syncs first, or last.
  void sync_all(const std::vector<Client*>& clients);
  std::string state(const std::string& group = "g");

  KeptLog log;
  KeptMetrics metrics;
  Monitor monitor{Log(log, "groups"), metrics};
  Factory factory{monitor};
  AggregateDriver driver;
  bool log_is_bad = false;  ///< the test has put something into it that cannot be loaded
};

}  // namespace millrace::consumer_groups::testing
