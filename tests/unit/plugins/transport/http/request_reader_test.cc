#include "plugins/transport/http/request_reader.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

namespace millrace::http_transport {
namespace {

constexpr std::size_t body_bytes_max = 100;

class RequestReaderTest : public ::testing::Test {
 protected:
  void push(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto space = reader.space();
      const auto size = std::min(space.size(), bytes.size());
      std::memcpy(space.data(), bytes.data(), size);
      reader.filled(size);
      bytes.remove_prefix(size);
    }
  }
  /// What all of `bytes` come to: the request, or why not.
  std::string read(std::string_view bytes) {
    push(bytes);
    const auto next = reader.next();
    if (!next) return std::to_string(next.error().status) + " " + next.error().reason;
    if (!*next) return "incomplete";
    const auto& request = **next;
    return request.method + " " + request.path + " host=" + request.host + " body=" + request.body +
           (request.keep_alive ? " keep" : " close");
  }
  unsigned refused(std::string_view bytes) {
    push(bytes);
    const auto next = reader.next();
    EXPECT_FALSE(next) << bytes;
    return next ? 1 : next.error().status;
  }

  RequestReader reader{body_bytes_max};
};

TEST_F(RequestReaderTest, ReadsARequest) {
  EXPECT_EQ(read("GET /metrics?x=1#y HTTP/1.1\r\nHost: localhost:9644\r\n\r\n"),
            "GET /metrics host=localhost body= keep");
}

TEST_F(RequestReaderTest, ReadsByteByByte) {
  const std::string text = "POST /a HTTP/1.1\r\nHost: [::1]:1\r\nContent-Length: 3\r\n\r\nabc";
  EXPECT_FALSE(reader.begun());
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    ASSERT_EQ(read(text.substr(at, 1)), "incomplete") << at;
    EXPECT_TRUE(reader.begun());
  }
  EXPECT_EQ(read("c"), "POST /a host=::1 body=abc keep");
  EXPECT_FALSE(reader.begun());
}

TEST_F(RequestReaderTest, RequestsFollowEachOther) {
  push(
      "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPUT /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
  EXPECT_EQ(read("GET /3 HTTP/1.0\r\n\r\nGET /4"), "GET /1 host=a body= keep");
  EXPECT_EQ(read(""), "PUT /2 host=a body=x keep");
  EXPECT_EQ(read(""), "GET /3 host= body= close");
  EXPECT_EQ(read(""), "incomplete");
  EXPECT_TRUE(reader.begun());
}

TEST_F(RequestReaderTest, ABodyMayComeInChunks) {
  EXPECT_EQ(read("PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: 1\r\n\r\n"),
            "PUT /a host=a body=abcde keep");
}

TEST_F(RequestReaderTest, ChunksMayComeByteByByte) {
  const std::string text =
      "PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n0\r\nTrailer: 1\r\n\r\n";
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    ASSERT_EQ(read(text.substr(at, 1)), "incomplete") << at;
  }
  EXPECT_EQ(read("\n"), "PUT /a host=a body=abc keep");
}

// The parser has seen the end of the chunks, and not yet that no trailer follows.
TEST_F(RequestReaderTest, TheLastChunkMayComeInPieces) {
  EXPECT_EQ(read("PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"),
            "incomplete");
  EXPECT_EQ(read("\r"), "incomplete");
  EXPECT_EQ(read("\n"), "PUT /a host=a body= keep");
}

TEST_F(RequestReaderTest, TheTargetMayBeAbsolute) {
  EXPECT_EQ(read("GET http://other:1/a/b?c HTTP/1.1\r\nHost: a\r\n\r\n"),
            "GET /a/b host=a body= keep");
  EXPECT_EQ(read("GET http://other HTTP/1.1\r\nHost: a\r\n\r\n"), "GET / host=a body= keep");
}

TEST_F(RequestReaderTest, AWishToContinueIsToldOnce) {
  EXPECT_EQ(read("PUT /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"),
            "incomplete");
  EXPECT_TRUE(reader.take_wish_to_continue());
  EXPECT_FALSE(reader.take_wish_to_continue());
  EXPECT_EQ(read("x"), "PUT /a host=a body=x keep");
  EXPECT_EQ(read("PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"), "incomplete");
  EXPECT_FALSE(reader.take_wish_to_continue());
}

TEST_F(RequestReaderTest, ConnectionCloseIsHeard) {
  EXPECT_EQ(read("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            "GET / host=a body= close");
}

struct Refused {
  const char* name;
  unsigned status;
  std::string bytes;
};
class RefusedRequestTest : public RequestReaderTest,
                           public ::testing::WithParamInterface<Refused> {};

TEST_P(RefusedRequestTest, HasTheStatusThatSaysWhy) {
  EXPECT_EQ(refused(GetParam().bytes), GetParam().status);
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedRequestTest,
    ::testing::Values(
        Refused{"Garbage", 400, "garbage\r\n\r\n"}, Refused{"Tls", 0, "\x16\x03\x01\x02"},
        Refused{"Kafka", 0, std::string("\0\0\0\x12", 4)}, Refused{"Binary", 0, "\x80\x81"},
        Refused{"EmptyLine", 0, "\r\nGET / HTTP/1.1\r\n\r\n"},
        Refused{"Version2", 505, "GET / HTTP/2.0\r\n\r\n"},
        Refused{"NoHost", 400, "GET / HTTP/1.1\r\n\r\n"},
        Refused{"TwoHosts", 400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
        Refused{"SpaceBeforeColon", 400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
        Refused{"TwoLengths", 400,
                "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"},
        Refused{"LengthAndChunks", 400,
                "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: "
                "chunked\r\n\r\nx"},
        Refused{"NegativeLength", 400, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"},
        Refused{"HugeLength", 400,
                "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n"},
        Refused{"OtherEncoding", 501,
                "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"},
        Refused{"OtherExpectation", 417,
                "PUT / HTTP/1.1\r\nHost: a\r\nExpect: miracle\r\nContent-Length: 1\r\n\r\n"},
        Refused{"LongBody", 413, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n"},
        Refused{"LongChunks", 413,
                "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" +
                    std::string(101, 'x') + "\r\n0\r\n\r\n"},
        Refused{"BadChunk", 400,
                "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"},
        Refused{"LongTarget", 431, "GET /" + std::string(head_bytes_max, 'x')},
        Refused{"LongFields", 431,
                "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(head_bytes_max, 'x')},
        Refused{"LongChunkHead", 431,
                "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;" +
                    std::string(3 * head_bytes_max, 'x')}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace millrace::http_transport
