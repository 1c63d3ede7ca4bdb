#include "plugins/transport/kafka/connection.h"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/kafka/api_versions.h>
#include <millrace/kafka/fetch.h>
#include <millrace/kafka/list_offsets.h>
#include <millrace/kafka/metadata.h>
#include <millrace/kafka/produce.h>

#include "fakes.h"

namespace millrace::kafka_transport::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;
using namespace std::string_view_literals;

class ConnectionTest : public ConnectionFixture {
 protected:
  std::string metadata(std::int32_t id) { return frame(1, id, kafka::MetadataRequest{}); }
  std::string produce(std::int32_t id, std::int16_t acks = -1, std::string_view records = "r") {
    kafka::ProduceRequest request;
    request.acks = acks;
    auto& topic = request.topic_data.emplace_back();
    topic.name = "orders";
    topic.partition_data.emplace_back(0, Buffer::copy_of(records));
    return frame(9, id, request);
  }
  std::string fetch(std::int32_t id, int partitions = 1) {
    kafka::FetchRequest request;
    auto& topic = request.topics.emplace_back();
    topic.topic = "orders";
    topic.partitions.resize(static_cast<std::size_t>(partitions));
    return frame(11, id, request);
  }
  void dispatch(std::size_t at) {
    broker.produces[at].dispatched.resolve();
    shard.run();
  }
  void finish(std::size_t at) {
    auto& held = broker.produces[at];
    held.done.resolve(plain_answer(held.request));
    shard.run();
  }
  void finish_fetch(std::size_t at) {
    auto& held = broker.fetches[at];
    held.done.resolve(plain_answer(held.request));
    shard.run();
  }
  std::size_t memory_used() { return broker.memory(shard).bytes_used(); }
};

// ---- order ----

TEST_F(ConnectionTest, AnswersWhatArrivesTogetherInOneSend) {
  connect();
  push(metadata(1) + metadata(2) + metadata(3));
  EXPECT_THAT(answered(), ElementsAre(1, 2, 3));
  EXPECT_EQ(wire.sends.size(), 1);
}

TEST_F(ConnectionTest, BeginsARequestOnceTheOneBeforeItIsDispatched) {
  broker.hold_produce = true;
  connect();
  push(produce(1) + produce(2) + metadata(3));
  ASSERT_EQ(broker.produces.size(), 1);
  dispatch(0);
  ASSERT_EQ(broker.produces.size(), 2);
  EXPECT_THAT(broker.metadata_asked, IsEmpty());
  dispatch(1);
  EXPECT_EQ(broker.metadata_asked.size(), 1);
  EXPECT_THAT(answered(), IsEmpty());
}

TEST_F(ConnectionTest, AnswersLeaveInTheOrderOfRequests) {
  broker.hold_produce = true;
  connect();
  push(produce(1) + produce(2) + metadata(3));
  dispatch(0);
  dispatch(1);
  finish(1);
  EXPECT_THAT(answered(), IsEmpty());
  finish(0);
  EXPECT_THAT(answered(), ElementsAre(1, 2, 3));
  EXPECT_EQ(wire.sends.size(), 1);
}

TEST_F(ConnectionTest, DoesNotAnswerProduceWithoutAcks) {
  connect();
  push(produce(1, 0) + metadata(2) + produce(3, 0));
  EXPECT_EQ(broker.produces.size(), 2);
  EXPECT_THAT(answered(), ElementsAre(2));
  EXPECT_FALSE(wire.closed);
}

TEST_F(ConnectionTest, EndsAProducerWithoutAcksWhoseRecordsWereRefused) {
  broker.on_produce = [](const ProduceRequest& request) {
    auto answer = plain_answer(request);
    answer.topics[0].partitions[0].error = ErrorCode::not_leader_or_follower;
    return answer;
  };
  connect();
  push(metadata(1) + produce(2, 0));
  EXPECT_THAT(answered(), ElementsAre(1));
  EXPECT_TRUE(ended);
  EXPECT_THAT(log.warnings(), IsEmpty());
}

TEST_F(ConnectionTest, OthersGetTheirTurnBetweenRequestsThatCameTogether) {
  connect();
  broker.on_metadata = [this] { shard.spend(400us); };
  std::string pipelined;
  for (std::int32_t id = 0; id < 12; ++id) pipelined += metadata(id);
  wire.push(pipelined);
  std::size_t asked_before = 0;
  shard.post([&] { asked_before = broker.metadata_asked.size(); });
  shard.run();
  EXPECT_EQ(asked_before, 3);
  EXPECT_EQ(broker.metadata_asked.size(), 12);
  EXPECT_EQ(wire.answers().size(), 12);
}

// ---- frames ----

TEST_F(ConnectionTest, PutsFramesTogetherByteByByte) {
  connect();
  for (const char byte : metadata(1) + produce(2) + metadata(3)) push({&byte, 1});
  EXPECT_THAT(answered(), ElementsAre(1, 2, 3));
}

TEST_F(ConnectionTest, ReadsFramesOfAllSizesInOneStream) {
  settings.frame_bytes_max = 1 << 20;
  connect();
  std::string stream;
  std::vector<std::int32_t> ids;
  std::vector<std::string> sent;
  for (std::int32_t id = 1; id <= 40; ++id) {
    const auto side = static_cast<std::size_t>(id);
    const auto size = side * side * side;  // 1 to 64,000 bytes
    sent.emplace_back(size, static_cast<char>('a' + id % 26));
    stream += produce(id, -1, sent.back());
    ids.push_back(id);
  }
  sent.emplace_back(300'000, 'x');  // more than a block
  stream += produce(41, -1, sent.back());
  ids.push_back(41);
  push(stream);
  EXPECT_EQ(answered(), ids);
  ASSERT_EQ(broker.produces.size(), sent.size());
  for (std::size_t at = 0; at < sent.size(); ++at) {
    EXPECT_EQ(broker.produces[at].request.topics[0].partitions[0].records->text(), sent[at]);
  }
}

struct Garbage {
  std::string_view bytes;
  std::string_view reason;
};
class ConnectionGarbageTest : public ConnectionFixture,
                              public ::testing::WithParamInterface<Garbage> {};

TEST_P(ConnectionGarbageTest, IsNamedInOneLineAndCostsNothing) {
  connect();
  push(GetParam().bytes);
  EXPECT_TRUE(wire.closed);
  EXPECT_TRUE(ended);
  EXPECT_THAT(log.warnings(), ElementsAre(HasSubstr(GetParam().reason)));
  EXPECT_THAT(log.warnings(), ElementsAre(HasSubstr("peer=192.0.2.7:40001")));
  EXPECT_EQ(counter("millrace_kafka_connections_closed_total", {{"reason", "bad_request"}}), 1);
  EXPECT_EQ(broker.memory(shard).bytes_used(), 0);
  EXPECT_THAT(wire.sends, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    All, ConnectionGarbageTest,
    ::testing::Values(Garbage{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "an HTTP request"},
                      Garbage{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03"sv, "a TLS handshake"},
                      Garbage{"\x7f\xff\xff\xff\0\x12\0\0"sv, "a request size of 2147483647"},
                      Garbage{"\xff\xff\xff\xff"sv, "a request size of -1"},
                      Garbage{"\0\0\0\0"sv, "a request size of 0"},
                      Garbage{"\0\x10\0\x01\0\x12\0\0"sv, "a request size of 1048577"},
                      Garbage{"\0\x0f\xff\xff\x27\x0f\0\0"sv, "API key 9999 is not served"},
                      Garbage{"\0\x0f\xff\xff\0\x03\0\x63"sv, "Metadata version 99"},
                      Garbage{"\0\0\0\x0a\0\x03\0\x01\0\0\0\x01\0\x20"sv, "client_id"}));

TEST_F(ConnectionTest, AnswersEarlierRequestsBeforeItEndsForAnUnknownOne) {
  connect();
  push(metadata(1) + std::string("\0\0\0\x0a\x27\x0f\0\0\0\0\0\x02\xff\xff"sv) + metadata(3));
  EXPECT_THAT(answered(), ElementsAre(1));
  EXPECT_TRUE(ended);
  EXPECT_EQ(broker.metadata_asked.size(), 1);
  EXPECT_EQ(log.warnings().size(), 1);
}

TEST_F(ConnectionTest, AnswersEarlierRequestsBeforeItEndsForAMalformedOne) {
  broker.hold_produce = true;
  connect();
  auto malformed = metadata(2);
  malformed[4 + 8 + 2 + 4] = 0x7f;  // the count of topics
  push(produce(1) + malformed + metadata(3));
  dispatch(0);
  EXPECT_FALSE(ended);
  finish(0);
  EXPECT_THAT(answered(), ElementsAre(1));
  EXPECT_TRUE(ended);
  EXPECT_THAT(broker.metadata_asked, IsEmpty());
  EXPECT_THAT(log.warnings(),
              ElementsAre(::testing::AllOf(HasSubstr("Metadata version 1"), HasSubstr("topics"))));
}

TEST_F(ConnectionTest, TellsOfAPeerThatLeavesWithinARequest) {
  connect();
  push(metadata(1).substr(0, 11));
  wire.close_peer();
  shard.run();
  EXPECT_TRUE(ended);
  EXPECT_THAT(log.warnings(), IsEmpty());
  ASSERT_FALSE(log.lines.empty());
  EXPECT_THAT(log.lines.front().text, HasSubstr("in the middle of a request"));
  EXPECT_THAT(log.lines.front().text, HasSubstr("received_bytes=11"));
  EXPECT_EQ(memory_used(), 0);
}

// ---- decompression bombs ----

class BombTest : public ConnectionTest {
 protected:
  BombTest() {
    broker.on_produce = [](const ProduceRequest& request) {
      auto answer = plain_answer(request);
      answer.topics[0].partitions[0].error = ErrorCode::message_too_large;
      answer.topics[0].partitions[0].message = "it would be larger";
      answer.topics[0].partitions[0].opens_too_large = true;
      return answer;
    };
  }
  std::uint64_t counted() {
    return metrics
        .counter("millrace_kafka_connections_closed_total", "", {{"reason", "decompression_bomb"}})
        .value();
  }
};

TEST_F(BombTest, IsAnsweredAndEndsItsConnection) {
  connect();
  push(metadata(1) + produce(2, -1) + metadata(3));
  EXPECT_THAT(answered(), ElementsAre(1, 2));
  EXPECT_FALSE(ended) << "its peer has the time to read that";
  push(produce(4, -1) + metadata(5));
  EXPECT_TRUE(wire.inbox.empty()) << "what is left unread would take back the answer";
  shard.advance(1s);
  EXPECT_TRUE(ended);
  EXPECT_THAT(answered(), ElementsAre(1, 2));
  ASSERT_EQ(log.warnings().size(), 1U);
  EXPECT_THAT(log.warnings().front(), HasSubstr("decompression bomb"));
  EXPECT_THAT(log.warnings().front(), HasSubstr("it would be larger"));
  EXPECT_EQ(counted(), 1);
  EXPECT_EQ(memory_used(), 0);
}

TEST_F(BombTest, WithoutAcksEndsItsConnectionToo) {
  connect();
  push(produce(1, 0));
  shard.advance(1s);
  EXPECT_TRUE(ended);
  EXPECT_THAT(answered(), IsEmpty());
  EXPECT_EQ(log.warnings().size(), 1U);
  EXPECT_EQ(counted(), 1);
}

// ---- bounds ----

TEST_F(ConnectionTest, IsNotReadFromWhileThereIsNoMemoryForTheNextRequest) {
  auto elsewhere = start(shard, broker.memory(shard).acquire(800'000));
  ASSERT_TRUE(elsewhere.is_ready());
  auto lease = elsewhere.await_resume();
  connect();
  push(produce(1, -1, std::string(700'000, 'r')));
  EXPECT_THAT(broker.produces, IsEmpty());
  EXPECT_GT(wire.inbox.size(), 600'000);  // all but the block that its head came in
  lease->shrink_to(0);
  shard.run();
  EXPECT_THAT(answered(), ElementsAre(1));
  EXPECT_EQ(memory_used(), 0);
}

TEST_F(ConnectionTest, AnswersSmallRequestsWhileRecordsWaitForMemory) {
  auto elsewhere = start(shard, broker.memory(shard).acquire(broker.memory(shard).bytes_max()));
  ASSERT_TRUE(elsewhere.is_ready());
  connect();
  push(metadata(1));
  EXPECT_THAT(answered(), ElementsAre(1));
}

TEST_F(ConnectionTest, EndsForAPeerThatStopsInTheMiddleOfARequest) {
  connect();
  push(produce(1, -1, std::string(700'000, 'r')).substr(0, 100));
  EXPECT_GT(memory_used(), 700'000);
  shard.advance(20s);
  push("more");
  shard.advance(20s);
  EXPECT_FALSE(ended);
  shard.advance(20s);
  EXPECT_TRUE(ended);
  EXPECT_EQ(memory_used(), 0);
  EXPECT_THAT(log.lines.front().text, HasSubstr("stopped in the middle of a request"));
}

TEST_F(ConnectionTest, AProduceHoldsItsMemoryUntilTheLogHasItsRecords) {
  broker.hold_produce = true;
  connect();
  push(produce(1, -1, std::string(700'000, 'r')));
  EXPECT_GT(memory_used(), 700'000);
  dispatch(0);
  EXPECT_GT(memory_used(), 700'000) << "its place is fixed, and it may have to be opened yet";
  broker.produces[0].request.memory.shrink_to(0);
  EXPECT_EQ(memory_used(), 0) << "it is not acknowledged yet";
  finish(0);
  EXPECT_THAT(answered(), ElementsAre(1));
}

TEST_F(ConnectionTest, AParkedFetchKeepsLittleMemory) {
  broker.hold_fetch = true;
  connect();
  push(fetch(1, 1000));
  ASSERT_EQ(broker.fetches.size(), 1);
  EXPECT_LE(memory_used(), Request::parked_bytes);
  broker.fetches[0].dispatched.resolve();
  finish_fetch(0);
  EXPECT_THAT(answered(), ElementsAre(1));
  EXPECT_EQ(memory_used(), 0);
}

TEST_F(ConnectionTest, BeginsNoMoreRequestsThanMayBeInFlight) {
  settings.requests_in_flight_max = 2;
  broker.hold_produce = true;
  connect();
  push(produce(1) + produce(2) + produce(3));
  dispatch(0);
  dispatch(1);
  EXPECT_EQ(broker.produces.size(), 2);
  finish(0);
  EXPECT_EQ(broker.produces.size(), 3);
  EXPECT_THAT(answered(), ElementsAre(1));
}

TEST_F(ConnectionTest, IsNotReadFromWhileAnswersPileUpForASlowReader) {
  settings.answer_bytes_pending_max = 8 * 150;  // of which one connection gets 150
  broker.metadata_answer.cluster_id = std::string(60, 'c');
  connect();
  wire.reads_slowly = true;
  const auto ask_metadata = [&](std::int32_t id) {
    kafka::MetadataRequest request;
    return frame(2, id, request);
  };
  for (std::int32_t id = 1; id <= 6; ++id) push(ask_metadata(id));
  // One answer is being sent, one waits: more than 150 bytes.
  EXPECT_EQ(broker.metadata_asked.size(), 2);
  EXPECT_GT(load->answers.bytes(), 150);
  wire.read_quickly();
  shard.run();
  EXPECT_EQ(broker.metadata_asked.size(), 6);
  EXPECT_THAT(answered(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(load->answers.bytes(), 0);
}

// ---- ends ----

TEST_F(ConnectionTest, ClosesWhenIdle) {
  connect();
  push(metadata(1));
  shard.advance(settings.idle_max - 1ns);
  EXPECT_FALSE(ended);
  shard.advance(1ns);
  EXPECT_TRUE(ended);
  EXPECT_TRUE(wire.closed);
}

TEST_F(ConnectionTest, TrafficPutsTheIdleDeadlineOff) {
  connect();
  for (int minute = 0; minute < 20; ++minute) {
    push(metadata(minute));
    shard.advance(1min);
  }
  EXPECT_FALSE(ended);
  shard.advance(settings.idle_max);
  EXPECT_TRUE(ended);
}

TEST_F(ConnectionTest, IsNotIdleWhileItWorksOnARequest) {
  broker.hold_fetch = true;
  connect();
  push(fetch(1));
  broker.fetches[0].dispatched.resolve();
  shard.advance(settings.idle_max + 1min);
  EXPECT_FALSE(ended);
  finish_fetch(0);
  EXPECT_THAT(answered(), ElementsAre(1));
  shard.advance(settings.idle_max);
  EXPECT_TRUE(ended);
}

TEST_F(ConnectionTest, EndsForAReaderThatNeverReads) {
  connect();
  wire.reads_slowly = true;
  push(metadata(1));
  shard.advance(settings.idle_max);
  EXPECT_TRUE(ended);
}

TEST_F(ConnectionTest, AnswersAPeerThatHasClosedItsSide) {
  broker.hold_produce = true;
  connect();
  push(produce(1));
  dispatch(0);
  wire.close_peer();
  shard.advance(1s);
  EXPECT_FALSE(ended);
  finish(0);
  EXPECT_THAT(answered(), ElementsAre(1));
  EXPECT_TRUE(ended);
}

TEST_F(ConnectionTest, EndsAtOnceWhenTheStreamFails) {
  broker.hold_fetch = true;
  connect();
  push(fetch(1));
  broker.fetches[0].dispatched.resolve();
  shard.run();
  wire.fail();
  shard.run();
  EXPECT_TRUE(ended);
  EXPECT_TRUE(broker.fetches[0].done.abandoned());
}

TEST_F(ConnectionTest, DoesNotWaitLongForAPeerThatHasClosedItsSide) {
  broker.hold_produce = true;
  connect();
  push(produce(1));
  dispatch(0);
  wire.close_peer();
  shard.run();
  shard.advance(1min);
  EXPECT_TRUE(ended);
  EXPECT_TRUE(broker.produces[0].done.abandoned());
  broker.produces[0].request.memory.shrink_to(0);  // the log has its records
  EXPECT_EQ(memory_used(), 0);
}

TEST_F(ConnectionTest, APollEndsWithItsPeer) {
  broker.hold_fetch = true;
  connect();
  push(metadata(1) + fetch(2));
  broker.fetches[0].dispatched.resolve();
  shard.run();
  wire.close_peer();
  shard.run();
  EXPECT_TRUE(ended);
  EXPECT_TRUE(broker.fetches[0].done.abandoned());
  EXPECT_THAT(answered(), ElementsAre(1));
  EXPECT_EQ(memory_used(), 0);
}

TEST_F(ConnectionTest, StopCancelsPollsAndAnswersTheRest) {
  broker.hold_fetch = true;
  broker.hold_produce = true;
  connect();
  push(produce(1));
  dispatch(0);
  push(fetch(2));
  broker.fetches[0].dispatched.resolve();
  shard.run();
  connection->stop();
  shard.run();
  EXPECT_TRUE(broker.fetches[0].done.abandoned());
  EXPECT_FALSE(ended);
  finish(0);
  EXPECT_THAT(answered(), ElementsAre(1));
  EXPECT_TRUE(ended);
}

TEST_F(ConnectionTest, StopAnswersWhatWasBegunAndNothingElse) {
  broker.hold_produce = true;
  connect();
  push(produce(1));
  dispatch(0);
  connection->stop();
  push(metadata(2));
  EXPECT_FALSE(ended);
  finish(0);
  EXPECT_THAT(answered(), ElementsAre(1));
  EXPECT_TRUE(ended);
  EXPECT_TRUE(wire.closed);
}

TEST_F(ConnectionTest, StopEndsAConnectionThatDoesNothing) {
  connect();
  connection->stop();
  shard.run();
  EXPECT_TRUE(ended);
}

TEST_F(ConnectionTest, AbortCancelsWhatWasBegun) {
  broker.hold_fetch = true;
  connect();
  push(fetch(1));
  connection->abort();
  shard.run();
  EXPECT_TRUE(ended);
  EXPECT_TRUE(broker.fetches[0].dispatched.abandoned());
  EXPECT_THAT(wire.sends, IsEmpty());
  EXPECT_THAT(log.warnings(), IsEmpty());
}

TEST_F(ConnectionTest, CountsWhatItMoves) {
  connect();
  const auto sent = metadata(1) + metadata(2);
  push(sent);
  EXPECT_EQ(counter("millrace_kafka_requests_total", {{"api", "Metadata"}}), 2);
  EXPECT_EQ(counter("millrace_kafka_requests_total", {{"api", "Fetch"}}), 0);
  EXPECT_EQ(counter("millrace_kafka_received_bytes_total"), sent.size());
  EXPECT_EQ(counter("millrace_kafka_sent_bytes_total"), wire.sends[0].size());
}

TEST_F(ConnectionTest, MeasuresHowLongRequestsTake) {
  broker.hold_fetch = true;
  connect();
  push(fetch(1));
  shard.advance(std::chrono::milliseconds(30));
  broker.fetches[0].dispatched.resolve();
  broker.fetches[0].done.resolve(plain_answer(broker.fetches[0].request));
  shard.run();
  const auto& took = metrics.histogram("millrace_kafka_request_seconds", "", {{"api", "Fetch"}});
  EXPECT_EQ(took.sum(), std::chrono::milliseconds(30));
}

TEST_F(ConnectionTest, CountsTheErrorsThatItAnswers) {
  broker.on_list_offsets = [](const ListOffsetsRequest& asked) {
    auto answer = plain_answer(asked);
    for (auto& partition : answer.topics[0].partitions) {
      partition.error = ErrorCode::unknown_topic_or_partition;
    }
    return answer;
  };
  connect();
  kafka::ListOffsetsRequest request;
  request.topics.emplace_back().name = "t";
  request.topics[0].partitions.resize(3);
  ask(1, request);
  EXPECT_EQ(counter("millrace_kafka_errors_total",
                    {{"api", "ListOffsets"}, {"error", "UNKNOWN_TOPIC_OR_PARTITION"}}),
            3);
}

TEST_F(ConnectionTest, CountsIdleConnectionsThatItCloses) {
  settings.idle_max = std::chrono::seconds(1);
  connect();
  shard.advance(std::chrono::seconds(2));
  EXPECT_TRUE(ended);
  EXPECT_EQ(counter("millrace_kafka_connections_closed_total", {{"reason", "idle"}}), 1);
}

}  // namespace
}  // namespace millrace::kafka_transport::testing
