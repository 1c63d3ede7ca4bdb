// A broker for the server's tests: answers at once with what the test has put there, and keeps what
// it was asked.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/admin.h>
#include <millrace/aggregate_admin.h>
#include <millrace/aggregates.h>
#include <millrace/broker.h>
#include <millrace/configs.h>
#include <millrace/groups.h>
#include <millrace/operations.h>
#include <millrace/plugin_starts.h>
#include <millrace/replacements.h>

namespace millrace::http_transport::testing {

class FakeOperations final : public Operations {
 public:
  State state() const noexcept override { return now; }
  std::vector<PluginFact> plugins() const override { return loaded; }
  std::vector<SettingFact> settings() const override { return set; }
  std::vector<LogLevelFact> log_levels() const override;
  Result<> set_log_level(std::string_view subsystem, std::optional<LogLevel> level) override;

  State now = State::serving;
  std::vector<PluginFact> loaded;
  std::vector<SettingFact> set;
  std::map<std::string, LogLevel, std::less<>> levels{{"", LogLevel::info}};
};

class FakePluginStarts final : public PluginStarts {
 public:
  std::vector<PluginStart> plugin_starts() const override { return starts; }

  std::vector<PluginStart> starts;
};

class FakeAdmin final : public Admin {
 public:
  Task<std::vector<TopicCreated>> create_topics(Session&, CreateTopicsRequest request) override;
  Task<std::vector<TopicDeleted>> delete_topics(Session&, std::vector<TopicName> topics,
                                                Duration) override;
  Task<std::vector<TopicGrown>> grow_topics(Session&, GrowTopicsRequest request) override;
  Task<std::vector<TopicTrimmed>> trim(Session&, TrimRequest) override;
  Task<TopicPage> describe_topics(Session&, TopicPageRequest) override;
  Task<std::vector<LogFolder>> describe_log_folders(
      Session&, std::optional<std::vector<TopicPartitions>>) override;
  Task<std::vector<TopicProducers>> describe_producers(Session&,
                                                       std::vector<TopicPartitions>) override;

  std::vector<CreateTopicsRequest> creations;
  std::vector<std::string> deleted;
  std::vector<TopicGrowth> grown;
  std::vector<LogFolder> folders;
  ErrorCode error = ErrorCode::none;  ///< what changes answer
  std::string message;
};

class FakeConfigs final : public Configs {
 public:
  Task<std::vector<ConfigsDescribed>> describe(Session&, std::vector<ConfigQuery> queries) override;
  Task<std::vector<ConfigsAltered>> alter(Session&, AlterConfigsRequest request) override;
  Task<std::vector<ConfigResource>> list(Session&, std::vector<ConfigResourceType>) override;

  std::vector<ConfigEntry> entries;
  std::vector<AlterConfigsRequest> alterations;
  ErrorCode error = ErrorCode::none;
  std::string message;
};

/// Knows the groups that the test has put there.
class FakeGroups final : public GroupService {
 public:
  Task<GroupCoordinator> coordinator(std::string group) override;
  Call<JoinGroupAnswer> join(const ClientInfo& client, JoinGroupRequest request) override;
  Call<SyncGroupAnswer> sync(SyncGroupRequest request) override;
  Task<ErrorCode> heartbeat(GroupHeartbeat request) override;
  Task<LeaveGroupAnswer> leave(LeaveGroupRequest request) override;
  Task<ConsumerHeartbeatAnswer> heartbeat(const ClientInfo& client,
                                          ConsumerHeartbeat request) override;
  Task<std::vector<ConsumerGroupDescribed>> describe_consumer_groups(
      std::vector<std::string> groups) override;
  Call<OffsetCommitAnswer> commit(const ClientInfo& client, OffsetCommitRequest request) override;
  Task<std::vector<GroupOffsets>> offsets(std::vector<GroupOffsetsQuery> groups,
                                          bool require_stable) override;
  Task<OffsetsDeleted> delete_offsets(OffsetDeletion request) override;
  Task<GroupsListed> list(GroupFilter filter) override;
  Task<std::vector<GroupDescribed>> describe(std::vector<std::string> groups) override;
  Task<std::vector<GroupDeleted>> remove(std::vector<std::string> groups) override;

  std::vector<GroupListed> listed;
  std::vector<GroupDescribed> classic;
  std::vector<ConsumerGroupDescribed> consumer;
  GroupOffsets committed;  ///< of every group
  std::vector<std::string> removed;
  ErrorCode error = ErrorCode::none;  ///< what list and remove answer
};

/// One broker, "b1", with `topics`; every partition holds offsets 10 to 30 unless it is unknown.
/// Answers a command with what it was told.
class FakeAggregates final : public Aggregates {
 public:
  Call<AggregateAnswer> command(std::string_view aggregate, std::string_view key,
                                std::unique_ptr<Message> body) override;
  Task<AggregateAnswer> query(std::string_view aggregate, std::string_view key,
                              std::unique_ptr<Message> question) override;
  Task<std::vector<AggregateAnswer>> query_all(std::string_view,
                                               std::function<std::unique_ptr<Message>()>) override {
    co_return std::vector<AggregateAnswer>();
  }
  Task<AggregateHome> home(std::string_view, std::string_view) override {
    co_return AggregateHome();
  }

  ErrorCode error = ErrorCode::none;
  bool own_types = false;  ///< its answers are no bytes

 private:
  AggregateAnswer answer(std::string text) const;
};

/// One.
class FakeAggregateAdmin final : public AggregateAdmin {
 public:
  Task<std::vector<AggregateFact>> list() override {
    co_return std::vector<AggregateFact>{{.name = "accounts",
                                          .topic = "accounts",
                                          .plugin = "org.example.bank",
                                          .version = "2",
                                          .path = file,
                                          .starts_from = "/p/bank.so",
                                          .partitions = 3,
                                          .serving = 3}};
  }
  Task<> replace(std::string, std::string) override {
    co_return Error{Errc::unsupported, "at all brokers"};
  }

  std::string file = "/p/bank.so";
};

/// What is asked for is replaced at brokers 1 and 3, unless the test says otherwise.
class FakeReplacements final : public Replacements {
 public:
  explicit FakeReplacements(FakeAggregateAdmin& aggregates) : aggregates_(aggregates) {}
  Task<std::vector<ReplacedAt>> replace_operator(std::string, std::string, std::string) override {
    co_return Error{Errc::not_found, "there are no streams"};
  }
  Task<std::vector<ReplacedAt>> replace_aggregate(std::string aggregate,
                                                  std::string file) override {
    if (not_replaced) co_return *not_replaced;
    if (aggregate == "accounts") aggregates_.file = file;
    co_return std::vector<ReplacedAt>{{1, {}}, {2, file + ": there is no such file"}, {3, {}}};
  }

  std::optional<Error> not_replaced;

 private:
  FakeAggregateAdmin& aggregates_;
};

class FakeBroker final : public Broker {
 public:
  std::unique_ptr<Session> open_session(const ClientInfo&) override {
    return std::make_unique<Session>();
  }
  MemoryBudget& memory(Shard&) noexcept override { return memory_; }
  Call<ProduceAnswer> produce(Session&, ProduceRequest) override;
  Call<FetchAnswer> fetch(Session&, FetchRequest) override;
  Task<ListOffsetsAnswer> list_offsets(Session&, ListOffsetsRequest request) override;
  Task<std::vector<TopicEpochEnds>> epoch_ends(Session&, std::vector<TopicEpochQuery>) override;
  Task<MetadataAnswer> metadata(Session&, MetadataRequest request) override;
  Task<InitProducerIdAnswer> init_producer_id(Session&, InitProducerIdRequest) override;
  Admin& admin() noexcept override { return admin_calls; }
  Configs& configs() noexcept override { return config_calls; }
  void* service(std::string_view id) noexcept override {
    if (id == GroupService::service_id && with_groups) return static_cast<GroupService*>(&groups);
    if (id == Aggregates::service_id && with_aggregates) {
      return static_cast<Aggregates*>(&aggregates);
    }
    if (id == AggregateAdmin::service_id && with_aggregates) {
      return static_cast<AggregateAdmin*>(&aggregate_admin);
    }
    if (id == Replacements::service_id && with_aggregates) {
      return static_cast<Replacements*>(&replacements);
    }
    if (id == PluginStarts::service_id) return static_cast<PluginStarts*>(&plugin_starts);
    return id == Operations::service_id ? static_cast<Operations*>(&operations) : nullptr;
  }

  FakeGroups groups;
  bool with_groups = true;  ///< before the server listens
  FakeAggregates aggregates;
  FakeAggregateAdmin aggregate_admin;
  FakeReplacements replacements{aggregate_admin};
  bool with_aggregates = true;

  FakeOperations operations;
  FakePluginStarts plugin_starts;
  FakeAdmin admin_calls;
  FakeConfigs config_calls;
  std::map<std::string, int> topics;  ///< partitions by name
  TopicPartition offline;             ///< has no leader
  bool stopping = false;              ///< calls fail
  bool slow = false;                  ///< metadata takes an hour

 private:
  MemoryBudget memory_{1 << 20};
};

}  // namespace millrace::http_transport::testing
