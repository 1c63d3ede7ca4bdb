#include "plugins/transport/kafka/frame_head.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kafka_transport {
namespace {

using ::testing::HasSubstr;
using namespace std::string_view_literals;

constexpr std::int32_t frame_bytes_max = 104857600;

std::string reason(std::string_view bytes, bool first_frame = true,
                   std::int32_t bytes_max = frame_bytes_max) {
  const auto checked = check_frame_size(as_bytes(bytes), first_frame, bytes_max);
  return checked ? "accepted" : to_string(checked.error());
}

TEST(FrameHeadTest, AcceptsSizesBetweenTheBounds) {
  EXPECT_EQ(reason("\0\0\0\x08"sv), "accepted");
  EXPECT_EQ(reason("\x06\x40\0\0"sv), "accepted");
}

TEST(FrameHeadTest, RefusesSizesThatNoRequestHas) {
  EXPECT_THAT(reason("\0\0\0\x07"sv), HasSubstr("found a request size of 7"));
  EXPECT_THAT(reason("\0\0\0\0"sv), HasSubstr("found a request size of 0"));
  EXPECT_THAT(reason("\xff\xff\xff\xff"sv), HasSubstr("found a request size of -1"));
  EXPECT_THAT(reason("\x06\x40\0\x01"sv), HasSubstr("expected a Kafka request of 8 to 104857600"));
  EXPECT_THAT(reason("\x7f\xff\xff\xff"sv), HasSubstr("found a request size of 2147483647"));
}

TEST(FrameHeadTest, NamesAnHttpRequest) {
  EXPECT_THAT(reason("GET / HTTP/1.1"sv), HasSubstr("found an HTTP request"));
  EXPECT_THAT(reason("POST /topics"sv), HasSubstr("found an HTTP request"));
}

TEST(FrameHeadTest, NamesATlsHandshake) {
  EXPECT_THAT(reason("\x16\x03\x01\x02"sv), HasSubstr("found a TLS handshake"));
}

TEST(FrameHeadTest, NamesAGreetingThatWouldPassForASizeOnTheFirstFrameOnly) {
  constexpr auto everything = 0x7fffffff;
  EXPECT_THAT(reason("GET /"sv, true, everything), HasSubstr("found an HTTP request"));
  EXPECT_EQ(reason("GET /"sv, false, everything), "accepted");
  EXPECT_THAT(reason("\x16\x03\x01\x02"sv, true, everything), HasSubstr("found a TLS handshake"));
}

TEST(FrameHeadTest, ReadsSizeKeyAndVersion) {
  const auto head = read_frame_head(as_bytes("\0\0\x01\x02\0\x12\0\x63"sv));
  EXPECT_EQ(head.frame_bytes, 258);
  EXPECT_EQ(head.api_key, 18);
  EXPECT_EQ(head.api_version, 99);
}

}  // namespace
}  // namespace millrace::kafka_transport
