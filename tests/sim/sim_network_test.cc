// Two nodes and the bytes between them.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <millrace/testing/sim_environment.h>

namespace millrace::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint16_t echo_port = 7;

Task<> echo(std::unique_ptr<Stream> stream) {
  MutableBuffer block(4096);
  while (true) {
    MR_CO_TRY(const auto bytes, co_await stream->receive({block.data(), block.capacity()}));
    if (bytes == 0) co_return {};
    Payload answer(Buffer::copy_of(Bytes(block.data(), bytes)));
    MR_CO_CHECK(co_await stream->send(std::move(answer)));
  }
}

Task<> accept_all(Listener& listener, Shard& shard) {
  while (true) {
    MR_CO_TRY(auto stream, co_await listener.accept(shard));
    spawn(shard, echo(std::move(stream)), "echo");
  }
}

Task<std::string> read_all(Stream& stream, std::size_t bytes) {
  std::string text;
  MutableBuffer block(4096);
  while (text.size() < bytes) {
    const MutableBytes space(block.data(), std::min(block.capacity(), bytes - text.size()));
    MR_CO_TRY(const auto read, co_await stream.receive(space));
    if (read == 0) co_return Error{Errc::closed, "the peer has closed its side"};
    text += as_text(Bytes(block.data(), read));
  }
  co_return text;
}

Task<std::string> ask(Network& network, std::string host, std::string question) {
  Address address{std::move(host), echo_port};
  MR_CO_TRY(auto stream, co_await network.connect(std::move(address)));
  // Not more at once than both directions hold: the echo reads only what it can send.
  constexpr std::size_t bytes_max = 100'000;
  std::string answer;
  for (std::size_t at = 0; at < question.size(); at += bytes_max) {
    const auto part = question.substr(at, bytes_max);
    Payload sent(Buffer::copy_of(part));
    MR_CO_CHECK(co_await stream->send(std::move(sent)));
    MR_CO_TRY(const auto received, co_await read_all(*stream, part.size()));
    answer += received;
  }
  co_return answer;
}

// A server on "b1" with one shard, and a client on "c1".
struct EchoWorld {
  explicit EchoWorld(std::uint64_t seed) : world(seed) { serve(); }

  void serve() {
    auto listening =
        world.run(shard(), [this] { return server.network().listen({"0.0.0.0", echo_port}); });
    ASSERT_TRUE(listening) << to_string(listening.error());
    listener = *std::move(listening);
    shard().post([this] { spawn(shard(), accept_all(*listener, shard()), "accept"); });
  }
  Shard& shard() { return *server.shards()[0]; }
  Result<std::string> ask_server(std::string question, Duration limit = seconds(60)) {
    return world.run(
        *client.shards()[0], [this, question] { return ask(client.network(), "b1", question); },
        limit);
  }

  std::unique_ptr<Listener> listener;
  SimWorld world;
  SimEnvironment& server = world.add_node("b1");
  SimEnvironment& client = world.add_node("c1");
};

std::string long_text() {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + ",";
  return text;
}

SimTrace trace_of(std::uint64_t seed) {
  EchoWorld echo_world(seed);
  EXPECT_TRUE(echo_world.ask_server("once"));
  EXPECT_TRUE(echo_world.ask_server("twice, and a little longer"));
  return echo_world.world.trace();
}

TEST(SimNetworkTest, CarriesBytesInOrderWhateverTheChunks) {
  EchoWorld echo_world(1);
  const auto text = long_text();
  const auto answer = echo_world.ask_server(text);
  ASSERT_TRUE(answer) << to_string(answer.error());
  EXPECT_EQ(*answer, text);
}

TEST(SimNetworkTest, GivesTheSameTraceForTheSameSeedAndAnotherForAnother) {
  const auto first = trace_of(7);
  const auto again = trace_of(7);
  EXPECT_EQ(first_difference(first, again), "");
  EXPECT_EQ(first.hash(), again.hash());
  const auto other = trace_of(8);
  EXPECT_NE(first.hash(), other.hash());
  EXPECT_NE(first_difference(first, other), "");
}

TEST(SimNetworkTest, CarriesBytesLateAndInOrderOverALinkThatIsLate) {
  EchoWorld echo_world(1);
  const auto text = long_text();
  const auto took = [&] {
    const auto begun = echo_world.world.now();
    const auto answer = echo_world.ask_server(text, std::chrono::minutes(10));
    EXPECT_TRUE(answer && *answer == text);
    return echo_world.world.now() - begun;
  };
  const auto usual = took();
  echo_world.world.delay(echo_world.server, milliseconds(500));
  EXPECT_GT(took(), 5 * usual);
  echo_world.world.heal();
  EXPECT_LT(took(), 2 * usual);
}

TEST(SimEnvironmentTest, DoesNothingWhilePausedAndThenAnswersWhatItWasAsked) {
  EchoWorld echo_world(1);
  const auto begun = echo_world.world.now();
  echo_world.server.pause(seconds(5));
  const auto answer = echo_world.ask_server("are you there");
  ASSERT_TRUE(answer) << to_string(answer.error());
  EXPECT_EQ(*answer, "are you there");
  EXPECT_GE(echo_world.world.now() - begun, seconds(5));
  EXPECT_LT(echo_world.world.now() - begun, seconds(6));
}

TEST(SimNetworkTest, RefusesWhereNobodyListensOrNobodyIs) {
  SimWorld world(3);
  auto& node = world.add_node("b1");
  const auto refused =
      world.run(node.control(), [&node] { return ask(node.network(), "b1", "?"); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "connect to 10.0.0.1:7: Connection refused");
  const auto unknown =
      world.run(node.control(), [&node] { return ask(node.network(), "b2", "?"); });
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::not_found);
}

TEST(SimNetworkTest, RefusesAPortThatIsTaken) {
  EchoWorld echo_world(3);
  auto& server = echo_world.server;
  const auto taken = echo_world.world.run(
      echo_world.shard(), [&server] { return server.network().listen({"10.0.0.1", echo_port}); });
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Errc::conflict);
}

TEST(SimNetworkTest, HoldsBytesBackOnABlockedLinkUntilItHeals) {
  EchoWorld echo_world(5);
  echo_world.world.block(echo_world.server, echo_world.client);
  const auto silent = echo_world.ask_server("late", seconds(5));
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code, Errc::timed_out);
  echo_world.world.heal();
  EXPECT_TRUE(echo_world.ask_server("now"));
}

TEST(SimNetworkTest, HoldsBackOneDirectionAlone) {
  const auto delivered = [](bool to_server) {
    EchoWorld echo_world(5);
    auto& [listener, world, server, client] = echo_world;
    auto stream =
        world.run(*client.shards()[0], [&] { return client.network().connect({"b1", echo_port}); });
    EXPECT_TRUE(stream);
    to_server ? world.block_one_way(client, server) : world.block_one_way(server, client);
    EXPECT_TRUE(world.run(*client.shards()[0],
                          [&] { return (*stream)->send(Payload(Buffer::copy_of("x"))); }));
    world.run_for(seconds(1));
    return std::ranges::count_if(world.trace().lines(), [](const std::string& line) {
      return line.find("deliver ") != std::string::npos;
    });
  };
  EXPECT_EQ(delivered(true), 0);
  EXPECT_EQ(delivered(false), 1) << "the question, without its answer";
}

TEST(SimNetworkTest, GivesUpConnectingOverABlockedLink) {
  EchoWorld echo_world(5);
  echo_world.world.block(echo_world.server, echo_world.client);
  const auto lost = echo_world.ask_server("lost");
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().detail, "connect to 10.0.0.1:7: no answer");
}

TEST(SimNetworkTest, ResetsTheConnectionsOfANodeThatCrashes) {
  EchoWorld echo_world(6);
  auto& client = echo_world.client;
  auto stream = echo_world.world.run(
      *client.shards()[0], [&client] { return client.network().connect({"b1", echo_port}); });
  ASSERT_TRUE(stream);
  echo_world.server.crash();
  const auto received =
      echo_world.world.run(*client.shards()[0], [&stream] { return read_all(**stream, 1); });
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, Errc::closed);
  EXPECT_FALSE(echo_world.ask_server("anybody?"));

  echo_world.listener.reset();
  echo_world.server.restart();
  echo_world.serve();
  EXPECT_TRUE(echo_world.ask_server("again"));
  EXPECT_TRUE(echo_world.server.reports().empty());
}

TEST(SimNetworkTest, ResetsBothEndsOfACutConnection) {
  EchoWorld echo_world(9);
  auto& client = echo_world.client;
  auto stream = echo_world.world.run(
      *client.shards()[0], [&client] { return client.network().connect({"b1", echo_port}); });
  ASSERT_TRUE(stream);
  echo_world.world.cut(echo_world.client, echo_world.server);
  const auto received =
      echo_world.world.run(*client.shards()[0], [&stream] { return read_all(**stream, 1); });
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, Errc::closed);
  EXPECT_TRUE(echo_world.ask_server("another connection"));
}

TEST(SimWorldTest, LetsTimeJumpToTheNextTimer) {
  SimWorld world(1);
  auto& node = world.add_node("b1");
  const auto begun = world.now();
  const auto wall = node.clock().wall();
  ASSERT_TRUE(world.run(node.control(), [] { return sleep(seconds(30)); }));
  EXPECT_EQ(world.now() - begun, seconds(30));
  EXPECT_EQ(node.clock().wall().ms - wall.ms, 30'000);
  node.jump_wall(milliseconds(-500));
  EXPECT_EQ(node.clock().wall().ms - wall.ms, 29'500);
}

TEST(SimWorldTest, RunsWorkersBesideTheShards) {
  SimWorld world(1);
  auto& node = world.add_node("b1", 2);
  bool on_shard = true;
  const auto result = world.run(*node.shards()[1], [&] {
    return on_worker(node.workers(), [&]() -> Result<int> {
      on_shard = node.shards()[0]->is_current() || node.shards()[1]->is_current();
      return 42;
    });
  });
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, 42);
  EXPECT_FALSE(on_shard);
}

TEST(SimWorldTest, KeepsWhatASpawnedTaskEndedWith) {
  SimWorld world(1);
  auto& node = world.add_node("b1");
  constexpr auto fail = []() -> Task<> { co_return Error{Errc::io, "no disk"}; };
  node.control().post([&] { spawn(node.control(), fail(), "flush"); });
  world.run_for(seconds(1));
  EXPECT_EQ(node.reports(), std::vector<std::string>{"b1/control flush: i/o: no disk"});
}

// In a world of its own, which dies with the process.
void use_a_shard_from_another() {
  SimWorld world(1);
  auto& node = world.add_node("b1", 2);
  node.shards()[0]->post(
      [&] { static_cast<void>(node.shards()[1]->schedule(world.now(), [] {})); });
  world.run_for(seconds(1));
}

TEST(SimWorldDeathTest, EndsTheProcessWhenAShardIsUsedFromAnother) {
  EXPECT_DEATH(use_a_shard_from_another(), "is_current");
}

TEST(SimWorldTest, UnwindsWhatStillWaitsAtItsEnd) {
  auto ended = std::make_shared<int>(0);
  {
    SimWorld world(1);
    auto& node = world.add_node("b1");
    constexpr auto wait = [](std::shared_ptr<int> count, Duration time) -> Task<> {
      const auto slept = co_await sleep(time);
      if (!slept) ++*count;
      co_return {};
    };
    node.control().post([&node, &wait, ended] {
      spawn(node.control(), wait(ended, std::chrono::hours(5)), "wait");
    });
    world.run_for(seconds(1));
  }
  EXPECT_EQ(*ended, 1);
}

}  // namespace
}  // namespace millrace::testing
