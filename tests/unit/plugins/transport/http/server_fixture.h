// The server on a simulated machine, and clients on another: time passes when nothing else is left
// to do, so that deadlines take no time.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>

#include "fakes.h"
#include "plugins/transport/http/server.h"

namespace millrace::http_transport::testing {

class ServerFixture : public ::testing::Test {
 protected:
  using Values = millrace::testing::OptionValues;
  static constexpr std::uint16_t port = 9644;

  void start(Values options = {});
  void stop();

  /// A connection of a client.
  std::shared_ptr<Stream> connect();
  void send(Stream& stream, std::string_view bytes);
  /// What comes until the server closes, or until nothing has come for a minute.
  std::string receive_all(Stream& stream);
  /// What comes until `end` is among it.
  std::string receive_until(Stream& stream, std::string end);

  /// All that is answered to these bytes on a connection of their own.
  std::string talk(std::string_view bytes);
  /// One request with a body, as a tool would send it.
  std::string ask(std::string_view method, std::string_view path, std::string_view body = {},
                  std::string_view fields = "Host: localhost\r\n");

  millrace::testing::SimWorld world{7};
  millrace::testing::SimEnvironment& node = world.add_node("b1", 2);
  millrace::testing::SimEnvironment& client = world.add_node("c1");
  FakeBroker broker;
  std::unique_ptr<millrace::testing::FakeHost> host;
  std::unique_ptr<Server> server;

  ~ServerFixture() override { stop(); }
};

/// "HTTP/1.1 200 OK\r\n…" to 200; 0 when it is no answer.
int status_of(std::string_view answer);
/// What follows the fields.
std::string body_of(std::string_view answer);

}  // namespace millrace::http_transport::testing
