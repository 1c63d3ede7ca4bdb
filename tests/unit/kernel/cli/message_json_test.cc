#include "kernel/cli/message_json.h"

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(MessageJsonTest, WhatIsPrintedIsTaken) {
  const std::string bytes("\xff\x00z", 3);
  const RecordView record{.offset = {7},
                          .timestamp = {1000},
                          .key = as_bytes(bytes),
                          .value = as_bytes("Größe"),
                          .headers = {{"a", as_bytes("1")}, {"b", std::nullopt}}};
  const auto line = boost::json::serialize(object_of("orders", 3, record));
  EXPECT_EQ(line, R"({"topic":"orders","partition":3,"offset":7,"timestamp":1000,)"
                  R"("key":{"hex":"ff007a"},"value":"Größe",)"
                  R"("headers":[{"key":"a","value":"1"},{"key":"b","value":null}]})");
  const auto message = message_of(line);
  ASSERT_TRUE(message) << message.error().detail;
  EXPECT_EQ(message->key, bytes);
  EXPECT_EQ(message->value, "Größe");
  EXPECT_EQ(message->partition, 3);
  EXPECT_EQ(message->timestamp->ms, 1000);
  EXPECT_THAT(message->headers,
              ElementsAre(Pair("a", std::optional<std::string>("1")), Pair("b", std::nullopt)));
}

TEST(MessageJsonTest, MembersMayBeLeftOut) {
  const auto message = message_of("{}");
  ASSERT_TRUE(message);
  EXPECT_EQ(message->key, std::nullopt);
  EXPECT_EQ(message->value, std::nullopt);
  EXPECT_EQ(message->partition, std::nullopt);
  EXPECT_EQ(message->timestamp, std::nullopt);
  EXPECT_EQ(message_of(R"({"timestamp":-1})")->timestamp, std::nullopt);
}

TEST(MessageJsonTest, WhatIsWrongIsNamed) {
  const auto why = [](std::string_view line) {
    const auto message = message_of(line);
    return message ? "" : message.error().detail;
  };
  EXPECT_THAT(why("hello"), HasSubstr("found hello"));
  EXPECT_THAT(why("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(why(R"({"vaule":"x"})"), HasSubstr("nearest known: value"));
  EXPECT_THAT(why(R"({"key":1})"), HasSubstr("\"key\": expected a text, null, or {\"hex\""));
  EXPECT_THAT(why(R"({"key":{"hex":"0"}})"), HasSubstr("an even count"));
  EXPECT_THAT(why(R"({"key":{"hex":"zz"}})"), HasSubstr("hexadecimal digits"));
  EXPECT_THAT(why(R"({"partition":-1})"), HasSubstr("\"partition\": expected an integer from 0"));
  EXPECT_THAT(why(R"({"headers":{"a":"1"}})"), HasSubstr("\"headers\": expected an array"));
  EXPECT_THAT(why(R"({"headers":[{"value":"1"}]})"), HasSubstr("\"headers\": expected an array"));
}

}  // namespace
}  // namespace millrace::kernel::cli
