#include "plugins/transport/kafka/server.h"

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/kafka/fetch.h>
#include <millrace/kafka/metadata.h>
#include <millrace/kafka/produce.h>

#include "fakes.h"

namespace millrace::kafka_transport::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

/// Connections that the test makes, in order.
struct Door {
  std::deque<Wire*> waiting;
  std::vector<unsigned> owners;  ///< the shard that each went to
  bool closed = false;
  Event changed;
};

class FakeListener final : public Listener {
 public:
  FakeListener(Door& door, Address local) : door_(door), local_(std::move(local)) {}
  Task<std::unique_ptr<Stream>> accept(Shard& owner) override {
    while (door_.waiting.empty() && !door_.closed) {
      auto waiting = door_.changed.wait();
      MR_CO_CHECK(co_await std::move(waiting));
    }
    if (door_.closed) co_return Error{Errc::closed, "closed"};
    auto* wire = door_.waiting.front();
    door_.waiting.pop_front();
    door_.owners.push_back(owner.index());
    co_return std::make_unique<WireStream>(*wire);
  }
  const Address& local() const noexcept override { return local_; }
  void close() noexcept override {
    door_.closed = true;
    door_.changed.notify_all();
  }

 private:
  Door& door_;
  Address local_;
};

/// A network and three shards; the transport may use nothing else.
class FakeEnvironment final : public Environment, public Network, public Host {
 public:
  explicit FakeEnvironment(LogSink& sink) : log_(sink, "kafka") {}

  Task<std::unique_ptr<Listener>> listen(Address address) override {
    if (address.port == 0) address.port = 40123;
    co_return std::make_unique<FakeListener>(door, address);
  }
  Task<std::unique_ptr<Stream>> connect(Address) override { std::abort(); }

  Clock& clock() noexcept override { std::abort(); }
  Random& random() noexcept override { std::abort(); }
  Network& network() noexcept override { return *this; }
  FileSystem& files() noexcept override { std::abort(); }
  BlockingPool& workers() noexcept override { std::abort(); }
  std::span<Shard* const> shards() noexcept override { return data_shards_; }
  Shard& control() noexcept override { return control_; }

  std::string_view instance() const noexcept override { return "inner"; }
  const Options& options() const noexcept override { std::abort(); }
  Environment& environment() noexcept override { return *this; }
  const Log& log() const noexcept override { return log_; }
  Metrics& metrics() noexcept override { return metrics_; }
  std::string_view setting(std::string_view) const noexcept override { return {}; }

  /// Until no shard has anything to do.
  void run() {
    for (bool worked = true; worked;) {
      worked = false;
      for (auto* shard : {&first_, &second_, &control_}) worked |= shard->run();
    }
  }
  void advance(Duration by) {
    run();
    for (auto* shard : {&first_, &second_, &control_}) shard->advance(by);
    run();
  }
  ManualShard& manual_control() noexcept { return control_; }

  Door door;

 private:
  Log log_;
  KeptMetrics metrics_;
  ManualShard first_{0};
  ManualShard second_{1};
  ManualShard control_{2};
  std::vector<Shard*> data_shards_{&first_, &second_};
};

class ServerTest : public ::testing::Test {
 public:
  ~ServerTest() override {
    if (!stopped) stop(0s);
    EXPECT_TRUE(stopped);
  }

 protected:
  void listen() {
    server.emplace(environment, settings);
    auto listening = start(environment.control(), server->listen(broker));
    environment.run();
    ASSERT_TRUE(listening.is_ready());
    auto bound = listening.await_resume();
    ASSERT_TRUE(bound) << to_string(bound.error());
    endpoint = *std::move(bound);
    stopped = false;
  }
  /// A client that has connected and sent `bytes`.
  Wire& connect(std::string_view bytes = {}) {
    auto& wire = *wires.emplace_back(std::make_unique<Wire>());
    wire.push(bytes);
    environment.door.waiting.push_back(&wire);
    environment.door.changed.notify_all();
    environment.run();
    return wire;
  }
  void stop(Duration grace) {
    auto stop_then_tell = [](Server* of, Duration limit, bool* done) -> Task<> {
      MR_CO_CHECK(co_await of->stop(limit));
      *done = true;
      co_return {};
    };
    spawn(environment.control(), stop_then_tell(&*server, grace, &stopped), "stop");
    environment.run();
    if (grace == Duration::zero()) environment.advance(1ms);
  }
  static std::string metadata(std::int16_t version = 1) {
    return bytes_of(*kafka::encode_request(7, "test", version, kafka::MetadataRequest{}));
  }
  static std::string fetch() {
    return bytes_of(*kafka::encode_request(8, "test", 11, kafka::FetchRequest{}));
  }

  static std::string produce(std::size_t bytes = 7) {
    kafka::ProduceRequest request;
    request.acks = -1;
    auto& topic = request.topic_data.emplace_back();
    topic.name = "orders";
    topic.partition_data.emplace_back(0, Buffer::copy_of(std::string(bytes, 'r')));
    return bytes_of(*kafka::encode_request(9, "test", 9, request));
  }

  Settings settings{.listen = {"127.0.0.1", 0},
                    .advertise = {"127.0.0.1", 0},
                    .frame_bytes_max = 1 << 20,
                    .connections_max = 100,
                    .requests_in_flight_max = 64,
                    .answer_bytes_pending_max = 1 << 20};
  KeptLog log;
  std::vector<std::unique_ptr<Wire>> wires;
  FakeBroker broker;
  FakeEnvironment environment{log};
  std::optional<Server> server;
  Endpoint endpoint;
  bool stopped = true;
};

TEST_F(ServerTest, TellsWhereItListensAndWhatItAdvertises) {
  listen();
  EXPECT_EQ(endpoint.listener, "inner");
  EXPECT_EQ(endpoint.bound, (Address{"127.0.0.1", 40123}));
  EXPECT_EQ(endpoint.advertised, endpoint.bound);
}

TEST_F(ServerTest, AdvertisesWhatItIsToldTo) {
  settings.listen = {"0.0.0.0", 9092};
  settings.advertise = {"broker.example", 19092};
  listen();
  EXPECT_EQ(endpoint.bound, (Address{"0.0.0.0", 9092}));
  EXPECT_EQ(endpoint.advertised, (Address{"broker.example", 19092}));
}

TEST_F(ServerTest, SpreadsConnectionsOverTheDataShards) {
  listen();
  for (int client = 0; client < 4; ++client) {
    EXPECT_THAT(connect(metadata()).answers(), SizeIs(1));
  }
  EXPECT_THAT(environment.door.owners, ElementsAre(0, 1, 0, 1));
}

TEST_F(ServerTest, AConnectionGoesWhereThereAreTheFewest) {
  listen();
  std::vector<Wire*> clients;
  for (int client = 0; client < 6; ++client) clients.push_back(&connect());
  for (const auto at : {0U, 2U, 4U}) clients[at]->close_peer();
  environment.run();
  connect();  // on the way before those had gone
  environment.door.owners.clear();
  for (int client = 0; client < 4; ++client) connect();
  EXPECT_THAT(environment.door.owners, ElementsAre(0, 0, 1, 0));
}

TEST_F(ServerTest, AConnectionThatNothingComesFromKeepsNoBlock) {
  listen();
  auto& client = connect(metadata());
  EXPECT_GT(client.space_bytes, 4096);
  environment.advance(3s);
  EXPECT_EQ(client.space_bytes, 1024);
  for (std::size_t answers = 2; answers < 5; ++answers) {
    client.push(metadata() + produce(2'000));  // more than the 1,024 bytes
    environment.run();
    EXPECT_THAT(client.answers(), SizeIs(2 * answers - 1));
    EXPECT_GT(client.space_bytes, 4096);
    environment.advance(3s);
    EXPECT_EQ(client.space_bytes, 1024);
  }
  EXPECT_FALSE(client.closed);
}

TEST_F(ServerTest, AConnectionWhosePollWaitsKeepsNoBlockEither) {
  broker.hold_fetch = true;
  listen();
  auto& client = connect(fetch());
  broker.fetches.front().dispatched.resolve();
  environment.advance(3s);
  EXPECT_EQ(client.space_bytes, 1024);
  broker.fetches.front().done.resolve(FetchAnswer{});
  environment.run();
  EXPECT_THAT(client.answers(), SizeIs(1));
}

TEST_F(ServerTest, GarbageOnOneConnectionLeavesTheOthersAlone) {
  listen();
  auto& good = connect(metadata());
  auto& bad = connect("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(bad.closed);
  EXPECT_FALSE(good.closed);
  good.push(metadata());
  environment.run();
  EXPECT_THAT(good.answers(), SizeIs(2));
}

TEST_F(ServerTest, RefusesConnectionsBeyondTheLimitUntilOneEnds) {
  settings.connections_max = 2;
  listen();
  auto& first = connect(metadata());
  connect(metadata());
  EXPECT_THAT(connect(metadata()).answers(), SizeIs(0));
  EXPECT_THAT(connect(metadata()).answers(), SizeIs(0));
  first.close_peer();
  environment.run();
  EXPECT_THAT(connect(metadata()).answers(), SizeIs(1));
}

TEST_F(ServerTest, StopEndsIdleConnectionsAtOnce) {
  listen();
  auto& idle = connect(metadata());
  stop(1min);
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(idle.closed);
  EXPECT_TRUE(environment.door.closed);
}

TEST_F(ServerTest, StopWaitsForAnswersUntilTheGracePeriodIsOver) {
  broker.hold_produce = true;
  listen();
  auto& answered = connect(produce());
  auto& parked = connect(produce());
  stop(5s);
  EXPECT_FALSE(stopped);
  auto& held = broker.produces.front();
  held.dispatched.resolve();
  held.done.resolve(ProduceAnswer{});
  environment.run();
  EXPECT_THAT(answered.answers(), SizeIs(1));
  EXPECT_TRUE(answered.closed);
  EXPECT_FALSE(parked.closed);
  environment.advance(5s);
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(parked.closed);
  EXPECT_THAT(log.warnings(), ElementsAre(HasSubstr("grace period")));
}

TEST_F(ServerTest, StopDoesNotWaitForPolls) {
  broker.hold_fetch = true;
  listen();
  auto& parked = connect(fetch());
  broker.fetches.front().dispatched.resolve();
  environment.run();
  stop(5s);
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(parked.closed);
  EXPECT_THAT(log.warnings(), IsEmpty());
}

/// Ten clients, on two shards, that ask for more than they read; what they are answered is more
/// than may wait.
class StalledReadersTest : public ServerTest {
 protected:
  StalledReadersTest() {
    broker.metadata_answer.cluster_id = std::string(1000, 'c');
    settings.answer_bytes_pending_max = 8'000;
    listen();
    for (int client = 0; client < 10; ++client) {
      auto& wire = connect();
      wire.reads_slowly = true;
      wire.push(metadata(2) + metadata(2) + metadata(2));
      environment.run();
      stalled.push_back(&wire);
    }
  }
  std::size_t stalled_open() {
    return static_cast<std::size_t>(
        std::ranges::count_if(stalled, [](const Wire* wire) { return !wire->closed; }));
  }

  std::vector<Wire*> stalled;
};

TEST_F(StalledReadersTest, AreNotReadFromWhileOthersAreServed) {
  EXPECT_EQ(broker.metadata_asked.size(), 10);
  for (int client = 0; client < 4; ++client) {
    EXPECT_THAT(connect(metadata() + metadata()).answers(), SizeIs(2));
  }
}

TEST_F(StalledReadersTest, AreClosedWhenTheyStaySo) {
  environment.advance(9s);
  EXPECT_EQ(stalled_open(), 10);
  environment.advance(2s);
  EXPECT_EQ(stalled_open(), 0);
  EXPECT_THAT(log.warnings(), SizeIs(10));
  EXPECT_THAT(log.warnings().front(), HasSubstr("does not read its answers"));
}

TEST_F(StalledReadersTest, AreToldOfInAFewLines) {
  for (int client = 0; client < 4; ++client) {
    auto& wire = connect();
    wire.reads_slowly = true;
    wire.push(metadata(2) + metadata(2) + metadata(2));
    stalled.push_back(&wire);
    environment.run();
  }
  environment.advance(11s);
  EXPECT_EQ(stalled_open(), 0);
  EXPECT_THAT(log.warnings(), SizeIs(2 * (5 + 1)));
  EXPECT_THAT(log.warnings().back(), HasSubstr("connections=2"));
}

TEST_F(StalledReadersTest, WhereNobodyIsServedForThemSomeAreClosedSoon) {
  broker.metadata_answer.cluster_id = std::string(3'500, 'c');
  std::vector<Wire*> last;
  for (int client = 0; client < 2; ++client) {
    environment.advance(100ms);
    auto& wire = *last.emplace_back(&connect());
    wire.reads_slowly = true;
    wire.push(metadata(2));
    environment.run();
  }
  auto& waits = connect(metadata());
  EXPECT_THAT(waits.answers(), IsEmpty());
  environment.advance(3s);
  EXPECT_THAT(waits.answers(), SizeIs(1));
  EXPECT_EQ(stalled_open(), 0);
  for (const auto* wire : last) EXPECT_FALSE(wire->closed) << "without the others there is room";
}

TEST_F(StalledReadersTest, GoOnOnceTheyRead) {
  for (auto* wire : stalled) wire->read_quickly();
  environment.run();
  EXPECT_EQ(broker.metadata_asked.size(), 30);
  environment.advance(1min);
  EXPECT_EQ(stalled_open(), 10);
  EXPECT_THAT(log.warnings(), IsEmpty());
}

/// Clients of the first of two shards, whose memory is 1 MiB; those of the other have nothing to
/// do.
class SlowSendersTest : public ServerTest {
 protected:
  SlowSendersTest() { listen(); }
  Wire& connect_first() {
    auto& wire = connect();
    connect();
    return wire;
  }
  void send(Wire& wire, std::string_view bytes) {
    wire.push(bytes);
    environment.run();
  }
  /// Metadata with so many bytes of a client's name.
  static std::string request(std::size_t bytes) {
    return bytes_of(
        *kafka::encode_request(7, std::string(bytes, 'c'), 1, kafka::MetadataRequest{}));
  }
  /// As much of `large` as comes in twenty seconds of a byte each.
  void trickle(Wire& wire) {
    for (std::size_t second = 0; second < 20; ++second) {
      environment.advance(1s);
      if (!wire.closed) send(wire, large.substr(100 + second, 1));
    }
  }

  const std::string large = metadata_of_many();

 private:
  static std::string metadata_of_many() {
    kafka::MetadataRequest request;
    auto& topics = request.topics.emplace();
    for (int topic = 0; topic < 20; ++topic) topics.emplace_back().name = name;
    return bytes_of(*kafka::encode_request(7, "test", 1, request));
  }
  inline static const std::string name = std::string(30'000, 't');
};

TEST_F(SlowSendersTest, AreLeftAloneWhereNobodyWaits) {
  auto& slow = connect_first();
  send(slow, large.substr(0, 100));
  trickle(slow);
  EXPECT_FALSE(slow.closed);
}

TEST_F(SlowSendersTest, AreClosedWhereOthersWaitForTheirMemory) {
  auto& slow = connect_first();
  auto& waits = connect_first();
  auto& small = connect_first();
  send(slow, large.substr(0, 100));
  send(waits, large);
  send(small, request(10'000));
  EXPECT_THAT(small.answers(), SizeIs(1)) << "it is none of the large ones";
  trickle(slow);
  EXPECT_TRUE(slow.closed);
  EXPECT_THAT(waits.answers(), SizeIs(1));
  ASSERT_THAT(log.warnings(), SizeIs(1));
  EXPECT_THAT(log.warnings().front(), HasSubstr("comes too slowly"));
}

TEST_F(SlowSendersTest, AreNotThoseWhoseBytesCome) {
  auto& steady = connect_first();
  auto& waits = connect_first();
  send(steady, large.substr(0, 100));
  send(waits, large);
  environment.advance(5s);
  send(steady, large.substr(100, 590'000));
  environment.advance(4s);
  EXPECT_FALSE(steady.closed);
  send(steady, large.substr(590'100));
  EXPECT_THAT(steady.answers(), SizeIs(1));
  EXPECT_THAT(waits.answers(), SizeIs(1));
}

}  // namespace
}  // namespace millrace::kafka_transport::testing
