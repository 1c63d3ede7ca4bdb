#include "server_fixture.h"

#include <charconv>
#include <vector>

#include "plugins/transport/http/settings.h"

namespace millrace::http_transport::testing {

using namespace std::chrono_literals;

namespace {

Task<> send_bytes(Stream* stream, std::string bytes) {
  auto sending = stream->send(Payload(Buffer::copy_of(bytes)));
  co_return co_await std::move(sending);
}

// Until `end` is there, or the other side closes, or nothing comes any more.
Task<std::string> receive_text(Stream* stream, std::string end) {
  std::string text;
  std::vector<std::byte> space(4096);
  while (end.empty() || text.find(end) == std::string::npos) {
    auto receiving = with_deadline(stream->receive(space), 60s);
    const auto bytes = co_await std::move(receiving);
    if (!bytes || *bytes == 0) break;
    text += as_text(Bytes(space).first(*bytes));
  }
  co_return text;
}

}  // namespace

void ServerFixture::start(Values options) {
  options.merge(millrace::testing::defaults_of(declared_options));
  options["listen"] = "0.0.0.0:" + std::to_string(port);
  host = std::make_unique<millrace::testing::FakeHost>(node, std::move(options));
  auto settings = read_settings(host->options());
  ASSERT_TRUE(settings) << to_string(settings.error());
  server = std::make_unique<Server>(*host, *std::move(settings));
  const auto endpoint = world.run(node.control(), [this] { return server->listen(broker); });
  ASSERT_TRUE(endpoint) << to_string(endpoint.error());
  EXPECT_EQ(endpoint->advertised.host, "");
}

void ServerFixture::stop() {
  if (!server) return;
  const auto stopped = world.run(node.control(), [this] { return server->stop(3s); });
  EXPECT_TRUE(stopped);
  server.reset();
}

std::shared_ptr<Stream> ServerFixture::connect() {
  auto connected = world.run(*client.shards().front(),
                             [this] { return client.network().connect({node.host(), port}); });
  EXPECT_TRUE(connected);
  return *std::move(connected);
}

void ServerFixture::send(Stream& stream, std::string_view bytes) {
  const auto sent = world.run(*client.shards().front(), [&stream, text = std::string(bytes)] {
    return send_bytes(&stream, text);
  });
  EXPECT_TRUE(sent);
}

std::string ServerFixture::receive_all(Stream& stream) { return receive_until(stream, ""); }

std::string ServerFixture::receive_until(Stream& stream, std::string end) {
  const auto text = world.run(
      *client.shards().front(),
      [&stream, end = std::move(end)] { return receive_text(&stream, end); }, 1h);
  EXPECT_TRUE(text);
  return text.value_or("");
}

std::string ServerFixture::talk(std::string_view bytes) {
  const auto stream = connect();
  send(*stream, bytes);
  auto answer = receive_all(*stream);
  stream->close();
  return answer;
}

std::string ServerFixture::ask(std::string_view method, std::string_view path,
                               std::string_view body, std::string_view fields) {
  std::string request(method);
  request += ' ';
  request += path;
  request += " HTTP/1.1\r\nConnection: close\r\n";
  request += fields;
  if (!body.empty()) {
    request +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  }
  request += "\r\n";
  request += body;
  return talk(request);
}

int status_of(std::string_view answer) {
  int status = 0;
  if (answer.starts_with("HTTP/1.1 ") && answer.size() > 12) {
    std::from_chars(answer.data() + 9, answer.data() + 12, status);
  }
  return status;
}

std::string body_of(std::string_view answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == answer.npos ? std::string() : std::string(answer.substr(end + 4));
}

}  // namespace millrace::http_transport::testing
