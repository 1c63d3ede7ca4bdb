#include "plugins/transport/http/access.h"

#include <gtest/gtest.h>

namespace millrace::http_transport {
namespace {

unsigned status_of(HttpRequest request, std::vector<std::string> hosts = {}) {
  Settings settings;
  settings.hosts = std::move(hosts);
  const auto refused = refuse_access(request, settings);
  return refused ? refused->status : 200;
}

TEST(AccessTest, AddressesAndLocalhostAreKnownHosts) {
  for (const auto* host : {"127.0.0.1", "::1", "localhost", "LocalHost", "10.0.0.1"}) {
    EXPECT_EQ(status_of({.host = host}), 200U) << host;
  }
}

TEST(AccessTest, OtherNamesMustBeConfigured) {
  for (const auto* host :
       {"evil.example", "", "localhost.evil.example", "127.0.0.1.evil.example"}) {
    EXPECT_EQ(status_of({.host = host}), 403U) << host;
  }
  EXPECT_EQ(status_of({.host = "Broker.example"}, {"broker.example"}), 200U);
}

TEST(AccessTest, APageOfAnotherOriginIsRefused) {
  const HttpRequest own{
      .host = "localhost", .authority = "localhost:9644", .origin = "http://localhost:9644"};
  EXPECT_EQ(status_of(own), 200U);
  for (const auto* origin :
       {"http://evil.example", "null", "http://localhost:1", "https://localhost:9644"}) {
    auto other = own;
    other.origin = origin;
    EXPECT_EQ(status_of(other), 403U) << origin;
  }
}

TEST(AccessTest, ABodyIsJson) {
  HttpRequest request{.host = "localhost", .body = "{}"};
  EXPECT_EQ(status_of(request), 415U);
  request.content_type = "text/plain";
  EXPECT_EQ(status_of(request), 415U);
  request.content_type = "application/JSON ; charset=utf-8";
  EXPECT_EQ(status_of(request), 200U);
}

}  // namespace
}  // namespace millrace::http_transport
