#include "plugins/transport/http/message.h"

#include <gtest/gtest.h>

namespace millrace::http_transport {
namespace {

std::string text_of(const Payload& payload) {
  const auto bytes = payload.flatten();
  return bytes ? std::string(bytes->text()) : to_string(bytes.error());
}

TEST(MessageTest, DatesAreThoseOfHttp) {
  EXPECT_EQ(http_date({784111777000}), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http_date({0}), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(http_date({1709164799999}), "Wed, 28 Feb 2024 23:59:59 GMT");
  EXPECT_EQ(http_date({1709164800000}), "Thu, 29 Feb 2024 00:00:00 GMT");
}

TEST(MessageTest, AnAnswerHasStatusFieldsAndBody) {
  EXPECT_EQ(text_of(to_payload({.status = 200, .body = "{}\n"}, {0}, true, false)),
            "HTTP/1.1 200 OK\r\n"
            "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
            "Content-Type: application/json\r\n"
            "Content-Length: 3\r\n"
            "Cache-Control: no-store\r\n"
            "X-Content-Type-Options: nosniff\r\n"
            "\r\n{}\n");
}

TEST(MessageTest, HeadHasTheFieldsOfTheBodyWithoutIt) {
  const auto text = text_of(to_payload({.body = "four"}, {0}, true, true));
  EXPECT_NE(text.find("Content-Length: 4\r\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\n\r\n"));
}

TEST(MessageTest, TheLastAnswerAndA405SaySo) {
  const auto text = text_of(to_payload({.status = 405, .allow = "GET, HEAD"}, {0}, false, false));
  EXPECT_TRUE(text.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_NE(text.find("\r\nAllow: GET, HEAD\r\n"), std::string::npos);
  EXPECT_NE(text.find("\r\nConnection: close\r\n"), std::string::npos);
}

}  // namespace
}  // namespace millrace::http_transport
