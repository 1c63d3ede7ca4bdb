#include "broker_fixture.h"

namespace millrace::kernel {

namespace {

template <class T>
Task<T> both_stages(Call<T> call) {
  MR_CO_CHECK(co_await call.dispatched);
  co_return co_await call.done;
}

Task<std::unique_ptr<Session>> open_on(KernelBroker& broker) {
  ClientInfo client;
  client.client_id = "test";
  client.listener = "kafka";
  co_return broker.open_session(client);
}

}  // namespace

BrokerTest::BrokerTest() : node_(world_.add_node("b1", 2)) { start(); }

BrokerTest::~BrokerTest() { stop(); }

void BrokerTest::restart() {
  stop();
  start();
}

void BrokerTest::start() {
  const std::string plugins = MILLRACE_PLUGIN_DIR;
  auto storage = testing::load_plugin(plugins + "/storage/memory.so", node_);
  ASSERT_TRUE(storage) << to_string(storage.error());
  storage_.emplace(*std::move(storage));
  auto coordination = testing::load_plugin(plugins + "/coordination/standalone.so", node_, {},
                                           {{"broker.data", "/data"}});
  ASSERT_TRUE(coordination) << to_string(coordination.error());
  coordination_.emplace(*std::move(coordination));
  counted_.emplace(*coordination_->registered().coordination);

  BrokerParts parts{node_,
                    own_storage_ ? *own_storage_ : *storage_->registered().storage,
                    *counted_,
                    Codecs(),
                    Log(log_, "broker"),
                    metrics_};
  BrokerConfig config{
      .id = 1, .rack = "", .memory_bytes = std::size_t{64} << 20, .defaults = defaults_};
  broker_ = std::make_unique<KernelBroker>(std::move(parts), std::move(config));
  const auto opened = world_.run(node_.control(), [this] { return broker_->open(); });
  ASSERT_TRUE(opened) << to_string(opened.error());
  const auto announced = world_.run(node_.control(), [this] {
    std::vector<Endpoint> endpoints{{"kafka", {"b1", 9092}, {"b1", 9092}}};
    return broker_->announce(std::move(endpoints));
  });
  ASSERT_TRUE(announced) << to_string(announced.error());
  for (std::size_t shard = 0; shard < 2; ++shard) {
    auto session = on_shard(shard, [this] { return open_on(*broker_); });
    ASSERT_TRUE(session);
    sessions_.push_back(*std::move(session));
  }
}

void BrokerTest::stop() {
  sessions_.clear();
  const auto closed = world_.run(node_.control(), [this] { return broker_->close(); });
  EXPECT_TRUE(closed) << to_string(closed.error());
  // By a thread that is none of the shards': nobody may wait for what it has.
  world_.run_outside([this] { broker_.reset(); });
  storage_.reset();
  coordination_.reset();
}

Session& BrokerTest::session(std::size_t shard) { return *sessions_[shard]; }

std::vector<TopicCreated> BrokerTest::create(NewTopic topic) {
  CreateTopicsRequest request{
      .topics = {std::move(topic)}, .timeout = std::chrono::seconds(30), .validate_only = false};
  auto created = on_shard(0, [&] { return broker_->admin().create_topics(session(0), request); });
  EXPECT_TRUE(created) << to_string(created.error());
  return *std::move(created);
}

void BrokerTest::create(const std::string& topic, std::int32_t partitions) {
  NewTopic wanted;
  wanted.name = topic;
  wanted.partitions = partitions;
  const auto created = create(std::move(wanted));
  ASSERT_EQ(created.at(0).error, ErrorCode::none) << created.at(0).message;
}

ProduceRequest BrokerTest::produce_request(const std::string& topic,
                                           std::vector<std::int32_t> partitions, std::string value,
                                           std::int16_t acks) {
  ProduceRequest request;
  request.acks = acks;
  request.timeout = std::chrono::seconds(30);
  auto& records = request.topics.emplace_back();
  records.topic.name = topic;
  for (const auto number : partitions) {
    BatchBuilder builder({});
    builder.add(node_.clock().wall(), std::nullopt, as_bytes(value));
    auto batch = std::move(builder).finish();
    EXPECT_TRUE(batch);
    records.partitions.push_back({number, *std::move(batch)});
  }
  return request;
}

FetchRequest BrokerTest::fetch_request(const std::string& topic,
                                       std::vector<PartitionFetch> partitions) {
  FetchRequest request;
  request.bytes_min = 1;
  auto& wanted = request.topics.emplace_back();
  wanted.topic.name = topic;
  for (auto& partition : partitions) {
    if (partition.bytes_max == 0) partition.bytes_max = 1 << 20;
    wanted.partitions.push_back(partition);
  }
  return request;
}

Result<ProduceAnswer> BrokerTest::produce(std::size_t shard, ProduceRequest request) {
  return on_shard(shard, [this, shard, request = std::move(request)]() mutable {
    return both_stages(broker_->produce(session(shard), std::move(request)));
  });
}

Result<FetchAnswer> BrokerTest::fetch(std::size_t shard, FetchRequest request) {
  return on_shard(shard, [this, shard, request = std::move(request)] {
    return both_stages(broker_->fetch(session(shard), request));
  });
}

std::shared_ptr<std::optional<Result<FetchAnswer>>> BrokerTest::begin_fetch(std::size_t shard,
                                                                            FetchRequest request) {
  auto answer = std::make_shared<std::optional<Result<FetchAnswer>>>();
  auto wait = [](KernelBroker& broker, Session& session, FetchRequest wanted,
                 std::shared_ptr<std::optional<Result<FetchAnswer>>> into) -> Task<> {
    auto call = broker.fetch(session, std::move(wanted));
    MR_CO_CHECK(co_await call.dispatched);
    into->emplace(co_await call.done);
    co_return {};
  };
  auto& home = *node_.shards()[shard];
  home.post([this, &home, wait, shard, request = std::move(request), answer] {
    spawn(home, wait(*broker_, session(shard), request, answer), "fetch");
  });
  return answer;
}

std::vector<std::string> BrokerTest::values_of(const PartitionFetched& partition) {
  std::vector<std::string> values;
  const auto records = partition.records.flatten();
  EXPECT_TRUE(records);
  for (std::size_t at = 0; at < records->size();) {
    const auto rest = records->slice(at);
    const auto header = read_batch_header(rest);
    EXPECT_TRUE(header);
    const auto batch = rest.slice(0, header->total_bytes());
    const auto read = for_each_record(*header, batch.slice(batch_header_bytes).bytes(),
                                      [&](const RecordView& record) {
                                        values.emplace_back(as_text(*record.value));
                                        return true;
                                      });
    EXPECT_TRUE(read);
    at += header->total_bytes();
  }
  return values;
}

}  // namespace millrace::kernel
