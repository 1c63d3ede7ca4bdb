#include <millrace/kafka/codec.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/kafka/api_versions.h>
#include <millrace/kafka/fetch.h>
#include <millrace/kafka/group_records.h>
#include <millrace/kafka/metadata.h>
#include <millrace/kafka/produce.h>

namespace millrace::kafka {
namespace {

using testing::HasSubstr;
using namespace std::string_view_literals;

/// What a peer sees: the frame without its size.
Buffer received(const Result<Payload>& payload) {
  const auto bytes = payload->flatten();
  EXPECT_EQ(load_be<std::int32_t>(bytes->data()), static_cast<std::int32_t>(bytes->size() - 4));
  return bytes->slice(4);
}

FetchRequest some_fetch() {
  FetchRequest request;
  request.max_wait_ms = 500;
  request.topics.push_back({.topic = "orders"});
  request.topics[0].partitions.push_back({.partition = 3, .fetch_offset = 42});
  return request;
}

TEST(CodecTest, ARequestComesBackFromItsFrame) {
  for (std::int16_t version = 0; version <= 12; ++version) {
    const auto payload = encode_request(7, "tester", version, some_fetch());
    ASSERT_TRUE(payload) << to_string(payload.error());
    const auto head = decode_request_head(received(payload));
    ASSERT_TRUE(head) << to_string(head.error());
    EXPECT_EQ(head->api->key, ApiKey::fetch);
    EXPECT_EQ(head->version, version);
    EXPECT_EQ(head->correlation_id, 7);
    EXPECT_EQ(head->client_id, "tester");
    const auto request = head->decode<FetchRequest>();
    ASSERT_TRUE(request) << to_string(request.error());
    EXPECT_EQ(request->max_wait_ms, 500);
    EXPECT_EQ(request->max_bytes, 0x7fffffff);
    ASSERT_EQ(request->topics.size(), 1U);
    EXPECT_EQ(request->topics[0].topic, "orders");
    EXPECT_EQ(request->topics[0].partitions.at(0).fetch_offset, 42);
  }
}

TEST(CodecTest, ADecodedMessageKeepsItsFrameAlive) {
  const auto decode_and_forget = [] {
    const auto payload = encode(some_fetch(), 4);
    return *decode<FetchRequest>(*payload->flatten(), 4);
  };
  const FetchRequest request = decode_and_forget();
  EXPECT_EQ(request.topics.at(0).topic, "orders");
}

TEST(CodecTest, RecordsOfAnAnswerStayFileRanges) {
  FetchResponse response;
  response.responses.push_back({.topic = "orders"});
  auto& partition = response.responses[0].partitions.emplace_back();
  partition.high_watermark = 9;
  partition.records.emplace().add(FileRange{.file = nullptr, .offset = 0, .size = 1000});
  const auto payload = encode_response(12, 1, response);
  ASSERT_TRUE(payload) << to_string(payload.error());
  ASSERT_EQ(payload->parts().size(), 3U);
  EXPECT_EQ(std::get<FileRange>(payload->parts()[1]).size, 1000U);
  const auto& head = std::get<Buffer>(payload->parts()[0]);
  EXPECT_EQ(load_be<std::int32_t>(head.data()), static_cast<std::int32_t>(payload->size() - 4));
}

TEST(CodecTest, RecordsOfARequestAreASliceOfItsFrame) {
  ProduceRequest request;
  request.topic_data.push_back({.name = "orders"});
  request.topic_data[0].partition_data.push_back({.records = Buffer::copy_of("batch")});
  const auto frame = received(encode_request(1, "", 9, request));
  const auto decoded = decode_request_head(frame)->decode<ProduceRequest>();
  ASSERT_TRUE(decoded);
  const auto& records = *decoded->topic_data.at(0).partition_data.at(0).records;
  EXPECT_EQ(records.text(), "batch");
  EXPECT_GE(records.data(), frame.data());
  EXPECT_LE(records.data() + records.size(), frame.data() + frame.size());
}

TEST(CodecTest, NullRecordsAreNotEmptyRecords) {
  for (const auto version : {std::int16_t{3}, std::int16_t{9}}) {
    ProduceRequest request;
    request.topic_data.push_back({.name = "orders"});
    request.topic_data[0].partition_data.push_back({.index = 0});
    request.topic_data[0].partition_data.push_back({.index = 1, .records = Buffer()});
    const auto decoded = decode<ProduceRequest>(*encode(request, version)->flatten(), version);
    ASSERT_TRUE(decoded);
    EXPECT_FALSE(decoded->topic_data.at(0).partition_data.at(0).records);
    EXPECT_TRUE(decoded->topic_data.at(0).partition_data.at(1).records);
  }
}

// Kafka's description of this one field has a default other than null: left out, it is a struct.
TEST(CodecTest, ANullStructIsNotOneOfDefaults) {
  ConsumerGroupMemberMetadataValue value;
  ASSERT_TRUE(value.classic_member_metadata.has_value());
  for (const bool is_null : {false, true}) {
    if (is_null) value.classic_member_metadata.reset();
    const auto written = encode(value, 0);
    ASSERT_TRUE(written);
    const auto bytes = written->flatten();
    ASSERT_TRUE(bytes);
    const auto read = decode<ConsumerGroupMemberMetadataValue>(*bytes, 0);
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_EQ(read->classic_member_metadata.has_value(), !is_null);
    EXPECT_EQ(bytes->text().ends_with(std::string_view("\1\0\1\0", 4)), is_null);
  }
}

TEST(CodecTest, AnAnswerComesBackFromItsFrame) {
  MetadataResponse response;
  response.brokers.push_back({.node_id = 1, .host = "localhost", .port = 9092});
  const auto frame = received(encode_response(9, 5, response));
  const auto decoded = decode_response<MetadataResponse>(frame, 9, 5);
  ASSERT_TRUE(decoded) << to_string(decoded.error());
  EXPECT_EQ(decoded->brokers.at(0).host, "localhost");
  const auto other = decode_response<MetadataResponse>(frame, 9, 6);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Errc::conflict);
}

TEST(CodecTest, AValueThatAVersionCannotCarryIsAnError) {
  auto request = some_fetch();
  request.topics[0].partitions[0].last_fetched_epoch = 5;  // version 12, and it matters
  request.rack_id = "r1";                                  // version 11, and may be dropped
  const auto old = encode(request, 10);
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, Errc::unsupported);
  EXPECT_THAT(old.error().detail, HasSubstr("last_fetched_epoch"));
  EXPECT_TRUE(encode(request, 12));
}

TEST(CodecTest, RefusesVersionsThatDoNotExist) {
  EXPECT_EQ(encode(FetchRequest{}, 99).error().code, Errc::unsupported);
  EXPECT_EQ(encode(FetchRequest{}, -1).error().code, Errc::unsupported);
  EXPECT_EQ(decode<FetchRequest>(Buffer(), 99).error().code, Errc::unsupported);
}

TEST(CodecTest, AnApiVersionsRequestFromTheFutureHasAReadableHead) {
  auto frame = received(encode_request(3, "future", 4, ApiVersionsRequest{}));
  MutableBuffer changed(frame.size());
  changed.append(frame);
  store_be(changed.data() + 2, std::int16_t{99});
  const auto head = decode_request_head(std::move(changed).freeze());
  ASSERT_TRUE(head);
  EXPECT_EQ(head->version, 99);
  EXPECT_FALSE(head->api->known.contains(head->version));
  EXPECT_EQ(head->correlation_id, 3);
}

TEST(CodecTest, OfAnApiVersionsRequestFromTheFutureOnlyTheBeginningIsRead) {
  const auto noise = decode_request_head(Buffer::copy_of(as_bytes("\0\x12\0\x63\0\0\0\3\xff"sv)));
  ASSERT_TRUE(noise);
  EXPECT_EQ(noise->correlation_id, 3);
  EXPECT_FALSE(decode_request_head(Buffer::copy_of(as_bytes("\0\x12\0\3\0\0\0\3\xff"sv))));
}

TEST(CodecTest, RefusesHeadsThatCannotBeAnswered) {
  EXPECT_EQ(decode_request_head(Buffer()).error().code, Errc::corrupt);
  EXPECT_EQ(decode_request_head(Buffer::copy_of("\x7f\x7f\0\0aaaa")).error().code, Errc::corrupt);
  EXPECT_EQ(decode_request_head(Buffer::copy_of("\x7f\x7f zzzz")).error().code, Errc::unsupported);
}

TEST(CodecTest, LeavesBytesBehindTheBodyUnread) {
  const auto payload = encode(ApiVersionsRequest{}, 0);
  EXPECT_TRUE(payload->empty());
  EXPECT_TRUE(decode<ApiVersionsRequest>(Buffer::copy_of("trailing"), 0));
}

}  // namespace
}  // namespace millrace::kafka
