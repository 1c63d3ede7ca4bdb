// Connections from their first byte to their last: the protocol, deadlines, limits and the stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server_fixture.h"

namespace millrace::http_transport::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ServerTest : public ServerFixture {
 protected:
  std::uint64_t counted(std::string_view name) { return host->metrics().counter(name, "").value(); }
};

TEST_F(ServerTest, HealthFollowsTheBroker) {
  start();
  const auto ok = ask("GET", "/healthz");
  EXPECT_EQ(status_of(ok), 200);
  EXPECT_EQ(body_of(ok), "{\"status\":\"ok\"}\n");
  broker.topics = {{"orders", 3}};
  broker.admin_calls.folders = {
      {.path = "/data", .topics = {{"orders", {{.partition = 1, .failing = true}}}}}};
  broker.offline = {"orders", 2};
  const auto degraded = ask("GET", "/healthz");
  EXPECT_EQ(status_of(degraded), 503);
  EXPECT_EQ(body_of(degraded),
            R"({"status":"degraded","offline":{"count":1,"partitions":["orders-2"]},)"
            R"("failing":{"count":1,"partitions":["orders-1"]}})"
            "\n");
  EXPECT_THAT(ask("GET", "/metrics"), HasSubstr("\nmillrace_partitions_offline 1\n"));
  EXPECT_THAT(ask("GET", "/metrics"), HasSubstr("\nmillrace_partitions_failing 1\n"));
  broker.slow = true;
  EXPECT_EQ(body_of(ask("GET", "/healthz")), "{\"status\":\"slow\"}\n");
  broker.stopping = true;
  EXPECT_EQ(body_of(ask("GET", "/healthz")), "{\"status\":\"stopping\"}\n");
  broker.operations.now = Operations::State::starting;
  const auto starting = ask("GET", "/healthz");
  EXPECT_EQ(status_of(starting), 503);
  EXPECT_EQ(body_of(starting), "{\"status\":\"starting\"}\n");
  broker.operations.now = Operations::State::stopping;
  EXPECT_EQ(body_of(ask("GET", "/healthz")), "{\"status\":\"stopping\"}\n");
}

TEST_F(ServerTest, MetricsAreText) {
  start();
  const auto answer = ask("GET", "/metrics");
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(answer, HasSubstr("\nmillrace_request_memory_limit_bytes{shard=\"0\"} 1048576\n"));
  EXPECT_THAT(answer, HasSubstr("\nmillrace_request_memory_limit_bytes{shard=\"1\"} 1048576\n"));
}

TEST_F(ServerTest, RequestsShareAConnectionAndMayBePipelined) {
  start();
  const auto stream = connect();
  send(*stream, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(status_of(receive_until(*stream, "}\n")), 200);
  send(*stream,
       "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n"
       "GET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const auto answers = receive_all(*stream);
  const auto first = answers.find("there is no path /1\"");
  const auto second = answers.find("there is no path /2\"");
  const auto third = answers.find("there is no path /3\"");
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_NE(third, std::string::npos);
  EXPECT_EQ(counted("millrace_http_requests_total"), 4U);
}

TEST_F(ServerTest, HeadHasNoBody) {
  start();
  const auto answer = ask("HEAD", "/healthz");
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 16\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(ServerTest, AClientThatWaitsBeforeItsBodyIsTold) {
  start();
  const auto stream = connect();
  send(*stream,
       "PUT /healthz HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(receive_until(*stream, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  send(*stream, "{}");
  EXPECT_EQ(status_of(receive_until(*stream, "}\n")), 405);
}

TEST_F(ServerTest, ABadRequestIsAnsweredOnceAndLogged) {
  start();
  const auto answer = talk("nonsense\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(status_of(answer), 400);
  EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(body_of(answer), StartsWith("{\"error\":\"bad_request\",\"message\":"));
  EXPECT_TRUE(host->kept_log().contains("closing a connection that sent a bad request"));
  EXPECT_EQ(counted("millrace_http_bad_requests_total"), 1U);
}

TEST_F(ServerTest, AnotherProtocolIsClosedWithALogLine) {
  start();
  EXPECT_EQ(talk(std::string_view("\x16\x03\x01\x02\x00\x01", 6)), "");
  EXPECT_TRUE(host->kept_log().contains("a TLS handshake"));
  EXPECT_EQ(talk(std::string_view("\0\0\0\x12\0\x12\0\3", 8)), "");
  EXPECT_TRUE(host->kept_log().contains("Kafka request"));
}

TEST_F(ServerTest, ARequestThatDoesNotEndIsNotWaitedFor) {
  start({{"request.timeout.ms", std::int64_t{10'000}}});
  const auto stream = connect();
  const auto began = world.now();
  for (int n = 0; n < 5; ++n) {
    send(*stream, n == 0 ? "GET /healthz HTTP/1.1\r\nX: " : "x");
    world.run_for(1s);
  }
  EXPECT_EQ(status_of(receive_all(*stream)), 408);
  EXPECT_GE(world.now() - began, 10s);
  EXPECT_LT(world.now() - began, 20s);
}

TEST_F(ServerTest, AnIdleConnectionIsClosed) {
  start({{"connections.max.idle.ms", std::int64_t{5'000}}});
  const auto stream = connect();
  const auto began = world.now();
  EXPECT_EQ(receive_all(*stream), "");
  EXPECT_LT(world.now() - began, 10s);
}

TEST_F(ServerTest, ConnectionsAreBoundedAndTheOneThatWaitsForTheLongestGivesWay) {
  start({{"max.connections", std::int64_t{2}}});
  const auto first = connect();
  send(*first, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  receive_until(*first, "}\n");
  const auto second = connect();
  send(*second, "GET /healthz HTTP/1.1\r\nHo");
  world.run_for(1s);
  EXPECT_EQ(status_of(ask("GET", "/healthz")), 200);
  EXPECT_EQ(receive_all(*first), "");
  EXPECT_EQ(counted("millrace_http_connections_displaced_total"), 1U);
  EXPECT_EQ(counted("millrace_http_connections_refused_total"), 0U);
  send(*second, "st: a\r\n\r\n");
  receive_until(*second, "}\n");
}

// Sixty of them kept monitoring away.
TEST_F(ServerTest, HalfRequestsKeepNobodyAway) {
  start({{"max.connections", std::int64_t{4}}});
  std::vector<std::shared_ptr<Stream>> held;
  for (int n = 0; n < 10; ++n) {
    held.push_back(connect());
    send(*held.back(), "GET /admin/topics HTTP/1.1\r\nHost:");
    EXPECT_EQ(status_of(ask("GET", "/healthz")), 200) << n;
  }
}

TEST_F(ServerTest, AdministrationIsNotForOtherNamesOrPages) {
  start({{"hosts", std::vector<std::string>{"broker.example"}}});
  EXPECT_EQ(status_of(ask("GET", "/admin/x", {}, "Host: evil.example\r\n")), 403);
  EXPECT_EQ(status_of(ask("GET", "/admin/x", {}, "Host: broker.example:1\r\n")), 404);
  EXPECT_EQ(
      status_of(ask("GET", "/admin/x", {}, "Host: localhost\r\nOrigin: http://evil.example\r\n")),
      403);
  EXPECT_EQ(status_of(ask("GET", "/metrics", {}, "Host: evil.example\r\n")), 200);
}

TEST_F(ServerTest, AStopClosesWhatWaitsAndRefusesMore) {
  start();
  const auto idle = connect();
  send(*idle, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  receive_until(*idle, "}\n");
  const auto began = world.now();
  stop();
  EXPECT_LT(world.now() - began, 1s);
  EXPECT_EQ(receive_all(*idle), "");
}

TEST_F(ServerTest, ListeningBeyondThisMachineIsWarnedOf) {
  start();
  EXPECT_TRUE(host->kept_log().contains("listening beyond this machine"));
}

}  // namespace
}  // namespace millrace::http_transport::testing
