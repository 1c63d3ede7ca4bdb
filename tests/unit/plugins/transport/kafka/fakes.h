// What a connection meets in its tests: a shard with a clock of its own, a stream whose other end
// is the test, and a broker that answers when it is told to.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/admin.h>
#include <millrace/broker.h>
#include <millrace/configs.h>
#include <millrace/environment.h>
#include <millrace/groups.h>
#include <millrace/kafka/codec.h>
#include <millrace/observe.h>
#include <millrace/peers.h>

#include "plugins/transport/kafka/connection.h"
#include "plugins/transport/kafka/lost_brokers.h"

namespace millrace::kafka_transport::testing {

/// Runs what was posted when the test says so; time passes when the test says so.
class ManualShard final : public Shard {
 public:
  explicit ManualShard(unsigned index = 0) : index_(index) {}
  unsigned index() const noexcept override { return index_; }
  MonoTime now() const noexcept override { return now_; }
  bool is_current() const noexcept override { return true; }
  void post(Job job) override { jobs_.push_back(std::move(job)); }
  void resume_soon(std::coroutine_handle<> waiting) override {
    jobs_.emplace_back([waiting] { waiting.resume(); });
  }
  TimerId schedule(MonoTime when, Job job) override {
    const auto id = TimerId{++last_timer_};
    timers_.emplace(id, std::pair(when, std::move(job)));
    return id;
  }
  void unschedule(TimerId timer) noexcept override { timers_.erase(timer); }
  void report(std::string_view task, const Error& error) noexcept override {
    reports.push_back(std::string(task) + ": " + to_string(error));
  }

  /// Until nothing is left to do at this moment. False when there was nothing.
  bool run();
  /// Time passes without anything being run, as while somebody works.
  void spend(Duration time) { now_ += time; }
  /// Lets time pass and runs what is due.
  void advance(Duration by);

  std::vector<std::string> reports;

 private:
  const unsigned index_;
  std::deque<Job> jobs_;
  std::map<TimerId, std::pair<MonoTime, Job>> timers_;
  std::uint64_t last_timer_ = 0;
  MonoTime now_{};
};

/// The test's end of a stream.
struct Wire {
  std::string inbox;               ///< on its way to the connection
  std::vector<std::string> sends;  ///< what each send() carried
  bool peer_closed = false;
  bool closed = false;        ///< by the connection
  bool reads_slowly = false;  ///< sends do not complete
  std::size_t receive_bytes_max = 1 << 20;
  std::size_t receives = 0;
  std::size_t space_bytes = 0;  ///< of the last receive
  Event changed;

  void push(std::string_view bytes) {
    inbox += bytes;
    changed.notify_all();
  }
  void close_peer() {
    peer_closed = true;
    changed.notify_all();
  }
  /// As when the peer resets the connection.
  void fail() {
    closed = true;
    changed.notify_all();
  }
  void read_quickly() {
    reads_slowly = false;
    changed.notify_all();
  }
  /// The answers so far, each without its size.
  std::vector<Buffer> answers() const;
};

class WireStream final : public Stream {
 public:
  explicit WireStream(Wire& wire) : wire_(wire) {}
  Task<std::size_t> receive(MutableBytes space) override;
  Task<> send(Payload payload) override;
  void close() noexcept override {
    wire_.closed = true;
    wire_.changed.notify_all();
  }
  const Address& peer() const noexcept override { return peer_; }

 private:
  Wire& wire_;
  Address peer_{"192.0.2.7", 40001};
};

struct LoggedLine {
  LogLevel level;
  std::string text;  ///< message and fields
};
class KeptLog final : public LogSink {
 public:
  bool wants(LogLevel, std::string_view) const noexcept override { return true; }
  void write(LogLevel level, std::string_view subsystem, std::string_view message,
             std::initializer_list<LogField> fields) noexcept override;
  /// Lines of warning level and above.
  std::vector<std::string> warnings() const;

  std::vector<LoggedLine> lines;
};

class KeptMetrics final : public Metrics {
 public:
  Counter& counter(std::string_view name, std::string_view help) override {
    return counter(name, help, {});
  }
  Gauge& gauge(std::string_view name, std::string_view help) override {
    return gauge(name, help, {});
  }
  Counter& counter(std::string_view name, std::string_view, MetricLabels labels) override {
    return counters_[{std::string(name), std::move(labels)}];
  }
  Gauge& gauge(std::string_view name, std::string_view, MetricLabels labels) override {
    return gauges_[{std::string(name), std::move(labels)}];
  }
  Histogram& histogram(std::string_view name, std::string_view, MetricLabels labels) override {
    return histograms_[{std::string(name), std::move(labels)}];
  }
  std::vector<MetricFamily> read() const override { return {}; }

 private:
  template <class T>
  using Kept = std::map<std::pair<std::string, MetricLabels>, T>;
  Kept<Counter> counters_;
  Kept<Gauge> gauges_;
  Kept<Histogram> histograms_;
};

/// Does what is asked, without errors, and remembers it.
class FakeAdmin final : public Admin {
 public:
  Task<std::vector<TopicCreated>> create_topics(Session&, CreateTopicsRequest request) override;
  Task<std::vector<TopicDeleted>> delete_topics(Session&, std::vector<TopicName> topics,
                                                Duration timeout) override;

  Task<std::vector<TopicGrown>> grow_topics(Session&, GrowTopicsRequest request) override;
  Task<std::vector<TopicTrimmed>> trim(Session&, TrimRequest request) override;
  Task<TopicPage> describe_topics(Session&, TopicPageRequest request) override;
  Task<std::vector<LogFolder>> describe_log_folders(
      Session&, std::optional<std::vector<TopicPartitions>> topics) override;
  Task<std::vector<TopicProducers>> describe_producers(
      Session&, std::vector<TopicPartitions> topics) override;
  Task<ClusterOutcome> elect_leaders(Session&, ElectionRequest request) override;
  Task<ClusterOutcome> reassign(Session&, ReassignmentRequest request) override;
  Task<ReassignmentsListed> list_reassignments(
      Session&, std::optional<std::vector<TopicPartitions>> topics) override;

  std::vector<ElectionRequest> elect_leaders_asked;
  std::vector<ReassignmentRequest> reassign_asked;
  std::vector<std::optional<std::vector<TopicPartitions>>> list_reassignments_asked;
  ClusterOutcome cluster_outcome;
  ReassignmentsListed reassignments;
  std::vector<GrowTopicsRequest> grow_topics_asked;
  std::vector<TrimRequest> trim_asked;
  std::vector<TopicPageRequest> describe_topics_asked;
  std::vector<std::optional<std::vector<TopicPartitions>>> describe_log_folders_asked;
  std::vector<std::vector<TopicPartitions>> describe_producers_asked;
  TopicPage topic_page;
  std::vector<LogFolder> log_folders;
  std::vector<ProducerInfo> producers;  ///< of every partition

  std::vector<CreateTopicsRequest> create_topics_asked;
  std::vector<std::vector<TopicName>> delete_topics_asked;
};

/// Answers with `described`, takes every change, and remembers what was asked.
class FakeConfigs final : public Configs {
 public:
  Task<std::vector<ConfigsDescribed>> describe(Session&, std::vector<ConfigQuery> queries) override;
  Task<std::vector<ConfigsAltered>> alter(Session&, AlterConfigsRequest request) override;
  Task<std::vector<ConfigResource>> list(Session&, std::vector<ConfigResourceType> types) override;

  std::vector<std::vector<ConfigQuery>> describe_asked;
  std::vector<AlterConfigsRequest> alter_asked;
  std::vector<std::vector<ConfigResourceType>> list_asked;
  std::vector<ConfigsDescribed> described;
  std::vector<ConfigResource> listed;
};

/// Answers at once through the functions below; where `hold_…` is set, calls wait for the test.
class FakeBroker final : public Broker {
 public:
  struct HeldProduce {
    ProduceRequest request;
    Resolver<> dispatched;
    Resolver<ProduceAnswer> done;
  };
  struct HeldFetch {
    FetchRequest request;
    Resolver<> dispatched;
    Resolver<FetchAnswer> done;
  };

  explicit FakeBroker(GroupService* loaded = nullptr, std::size_t memory_bytes = 1 << 20)
      : groups(loaded), memory_(memory_bytes) {}

  std::unique_ptr<Session> open_session(const ClientInfo& client) override {
    client_info = &client;
    return std::make_unique<Session>();
  }
  MemoryBudget& memory(Shard&) noexcept override { return memory_; }
  Call<ProduceAnswer> produce(Session&, ProduceRequest request) override;
  Call<FetchAnswer> fetch(Session&, FetchRequest request) override;
  Task<ListOffsetsAnswer> list_offsets(Session&, ListOffsetsRequest request) override;
  Task<std::vector<TopicEpochEnds>> epoch_ends(Session&,
                                               std::vector<TopicEpochQuery> topics) override;
  Task<MetadataAnswer> metadata(Session&, MetadataRequest request) override;
  Task<InitProducerIdAnswer> init_producer_id(Session&, InitProducerIdRequest request) override;
  FakeAdmin& admin() noexcept override { return admin_; }
  FakeConfigs& configs() noexcept override { return configs_; }
  void* service(std::string_view id) noexcept override {
    if (id == GroupService::service_id) return groups;
    if (id == ClusterService::service_id) return cluster;
    return nullptr;
  }

  ClusterService* cluster = nullptr;
  GroupService* const groups;  ///< none: not loaded

  const ClientInfo* client_info = nullptr;
  bool hold_produce = false;
  bool hold_fetch = false;
  std::deque<HeldProduce> produces;  ///< in order of arrival
  std::deque<HeldFetch> fetches;

  std::vector<ListOffsetsRequest> list_offsets_asked;
  std::vector<std::vector<TopicEpochQuery>> epoch_ends_asked;
  std::vector<MetadataRequest> metadata_asked;
  std::vector<InitProducerIdRequest> init_producer_id_asked;

  std::function<ProduceAnswer(const ProduceRequest&)> on_produce;
  std::function<FetchAnswer(const FetchRequest&)> on_fetch;
  std::function<ListOffsetsAnswer(const ListOffsetsRequest&)> on_list_offsets;
  MetadataAnswer metadata_answer;
  std::function<void()> on_metadata;

 private:
  MemoryBudget memory_;
  FakeAdmin admin_;
  FakeConfigs configs_;
};

/// Answers of the right shape: the request's topics and partitions, without errors.
ProduceAnswer plain_answer(const ProduceRequest& request);
FetchAnswer plain_answer(const FetchRequest& request);
ListOffsetsAnswer plain_answer(const ListOffsetsRequest& request);

std::string bytes_of(const Payload& payload);

/// One connection between a Wire and a FakeBroker.
class ConnectionFixture : public ::testing::Test {
 public:
  ~ConnectionFixture() override;

 protected:
  /// `groups` is loaded into the broker.
  explicit ConnectionFixture(GroupService* groups = nullptr);

  /// Starts serving, with the settings as they are now.
  void connect();
  /// Sends bytes and lets the connection work until it waits.
  void push(std::string_view bytes) {
    wire.push(bytes);
    shard.run();
  }
  template <class Request>
  std::string frame(std::int16_t version, std::int32_t correlation_id, const Request& request,
                    std::string_view client_id = "test") {
    auto encoded = kafka::encode_request(correlation_id, client_id, version, request);
    EXPECT_TRUE(encoded) << to_string(encoded.error());
    return encoded ? bytes_of(*encoded) : std::string();
  }
  /// Sends one request and decodes its answer, which must come at once.
  template <class Request, class Response = typename Request::Response>
  Response ask(std::int16_t version, const Request& request) {
    const auto before = wire.answers().size();
    push(frame(version, ++last_correlation_id_, request));
    const auto answers = wire.answers();
    EXPECT_EQ(answers.size(), before + 1);
    if (answers.size() != before + 1) return {};
    auto response = kafka::decode_response<Response>(answers.back(), version, last_correlation_id_);
    EXPECT_TRUE(response) << to_string(response.error());
    return response ? *std::move(response) : Response();
  }
  /// The correlation ids of what was answered, in order.
  std::vector<std::int32_t> answered() const;
  std::size_t counter(std::string_view name, MetricLabels labels = {}) {
    return metrics.counter(name, "", std::move(labels)).value();
  }

  ManualShard shard;
  Wire wire;
  KeptLog log;
  KeptMetrics metrics;
  FakeBroker broker;
  Settings settings;
  ApiSet apis;
  std::unique_ptr<ShardLoad> load;
  std::size_t waits = 0;  ///< for memory, of requests
  LostBrokers lost;
  std::unique_ptr<Connection> connection;
  bool ended = false;

 private:
  TransportMetrics transport_metrics_{metrics, apis};
  ListenerContext context_;
  std::int32_t last_correlation_id_ = 100;
};

}  // namespace millrace::kafka_transport::testing
