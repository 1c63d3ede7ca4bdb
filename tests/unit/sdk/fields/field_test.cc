#include <millrace/fields/field.h>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::string read(std::string_view name, const RecordView& record) {
  const auto field = Field::parse(name);
  if (!field) return "refused: " + field.error().detail;
  std::string scratch;
  const auto found = field->read(record, scratch);
  if (!found) return "error: " + found.error().detail;
  return *found ? std::string(**found) : "none";
}

std::string read_json(std::string_view name, std::string_view json) {
  RecordView record;
  record.value = as_bytes(json);
  return read(name, record);
}

TEST(FieldTest, ReadsKeyValueAndHeaders) {
  RecordView record;
  record.key = as_bytes("k");
  record.value = as_bytes("v");
  record.headers = {{"a", as_bytes("1")}, {"a", as_bytes("2")}, {"b.c", std::nullopt}};
  EXPECT_EQ(read("key", record), "k");
  EXPECT_EQ(read("value", record), "v");
  EXPECT_EQ(read("header.a", record), "2");
  EXPECT_EQ(read("header.b.c", record), "none");
  EXPECT_EQ(read("header.x", record), "none");
  EXPECT_EQ(read("key", RecordView{}), "none");
  EXPECT_EQ(read("value.a", RecordView{}), "none");
}

TEST(FieldTest, ReadsMembersAndElements) {
  constexpr std::string_view json =
      R"({"a": {"b": [10, {"c": "x\ny"}, [true]]}, "n": null, "a.b": 1, "": 2})";
  EXPECT_EQ(read_json("value.a.b.0", json), "10");
  EXPECT_EQ(read_json("value.a.b.1.c", json), "x\ny");
  EXPECT_EQ(read_json("value.a.b.2", json), "[true]");
  EXPECT_EQ(read_json("value.a.b.2.0", json), "true");
  EXPECT_EQ(read_json("value.a.b.3", json), "none");
  EXPECT_EQ(read_json("value.a.b.c", json), "none");
  EXPECT_EQ(read_json("value.a", json), R"({"b":[10,{"c":"x\ny"},[true]]})");
  EXPECT_EQ(read_json("value.n", json), "null");
  EXPECT_EQ(read_json("value.n.x", json), "none");
  EXPECT_EQ(read_json(R"(value."a.b")", json), "1");
  EXPECT_EQ(read_json("value.b", json), "none");
  EXPECT_EQ(read_json(R"(value."")", json), "2");
}

TEST(FieldTest, NumbersStayAsTheyWereWritten) {
  EXPECT_EQ(read_json("value.a", R"({"a":1.10})"), "1.10");
  EXPECT_EQ(read_json("value.a", R"({"a":12345678901234567890.123456789})"),
            "12345678901234567890.123456789");
  EXPECT_EQ(read_json("value.a", R"({"a":-1e400})"), "-1e400");
}

TEST(FieldTest, TheLastOfTwoMembersCounts) {
  EXPECT_EQ(read_json("value.a", R"({"a":1,"b":2,"a":3})"), "3");
  EXPECT_EQ(read_json("value.a.b", R"({"a":{"b":1},"a":{"c":2}})"), "1");
}

TEST(FieldTest, WhatIsNotJsonIsAnError) {
  for (const auto* text : {"", "{", "{} x", "nope", "{\"a\":1", "\xff", "{\"a\":\"\xff\"}"}) {
    EXPECT_EQ(read_json("value.a", text).substr(0, 16), "error: not JSON:") << text;
  }
  EXPECT_EQ(read_json("value.a", std::string(2'000, '[')).substr(0, 16), "error: not JSON:");
  // Behind what was looked for, too.
  EXPECT_EQ(read_json("value.a", "{\"a\":1,}").substr(0, 16), "error: not JSON:");
}

TEST(FieldTest, SaysWhatANameLooksLike) {
  EXPECT_EQ(read_json("vlaue.a", "{}"),
            "refused: expected key, value, header.NAME, or value.PATH such as value.customer.id, "
            "found \"vlaue.a\"");
  EXPECT_EQ(read_json("value..a", "{}"), "refused: \"value..a\": a name is missing");
  EXPECT_EQ(read_json("value.a.", "{}"), "refused: \"value.a.\": a name is missing");
  EXPECT_EQ(read_json("value.\"a", "{}"), "refused: \"value.\"a\": a quote that does not end");
  EXPECT_EQ(read_json("value.\"a\"b", "{}"),
            "refused: \"value.\"a\"b\": expected a dot behind a quoted name");
  EXPECT_EQ(read_json("header.", "{}").substr(0, 8), "refused:");
  EXPECT_EQ(read_json("", "{}").substr(0, 8), "refused:");
}

}  // namespace
}  // namespace millrace
