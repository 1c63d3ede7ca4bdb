// Writes to partitions that another broker leads: what is asked over the link arrives at the
// other's services, and the answers come back.
#include "plugins/transport/kafka/record_link.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "link_fixture.h"

namespace millrace::kafka_transport::testing {
namespace {

using ::testing::SizeIs;
using namespace std::chrono_literals;

class RecordLinkTest : public LinkFixture<KafkaRecordLink, RecordPeer> {
 protected:
  /// Two partitions of a topic, then one of another.
  ProduceRequest produce() const {
    ProduceRequest request{.acks = -1, .timeout = 700ms, .topics = {}};
    auto& counts = request.topics.emplace_back(TopicRecords{{"counts", id_}, {}});
    counts.partitions.push_back({4, Buffer::copy_of("first")});
    counts.partitions.push_back({2, Buffer::copy_of("second")});
    auto& dead = request.topics.emplace_back(TopicRecords{{"dead", Uuid{{9}}}, {}});
    dead.partitions.push_back({0, Buffer::copy_of("third")});
    return request;
  }
};

TEST_F(RecordLinkTest, RecordsArriveAndEachPartitionIsAnswered) {
  std::vector<std::string> arrived;
  broker_.on_produce = [&](const ProduceRequest& request) {
    EXPECT_EQ(request.acks, -1);
    EXPECT_EQ(request.timeout, 700ms);
    ProduceAnswer answer;
    for (const auto& topic : request.topics) {
      auto& produced = answer.topics.emplace_back(TopicProduced{topic.topic, {}});
      for (const auto& partition : topic.partitions) {
        arrived.push_back(to_string(topic.topic.id) + "-" + std::to_string(partition.partition) +
                          " " + std::string(partition.records->text()));
        const bool refused = partition.partition == 2;
        produced.partitions.push_back(
            {.partition = partition.partition,
             .error = refused ? ErrorCode::not_leader_or_follower : ErrorCode::none,
             .message = refused ? "elsewhere" : "",
             .record_errors = {},
             .base_offset = {refused ? -1 : 40 + partition.partition}});
      }
    }
    return answer;
  };
  const auto answer = on_a([this] { return peer_->produce(produce()); });
  ASSERT_TRUE(answer) << to_string(answer.error());
  EXPECT_THAT(arrived,
              ::testing::ElementsAre(to_string(id_) + "-4 first", to_string(id_) + "-2 second",
                                     to_string(Uuid{{9}}) + "-0 third"));
  ASSERT_THAT(answer->topics, SizeIs(2));
  EXPECT_EQ(answer->topics[0].topic.id, id_);
  ASSERT_THAT(answer->topics[0].partitions, SizeIs(2));
  EXPECT_EQ(answer->topics[0].partitions[0].base_offset, Offset{44});
  EXPECT_EQ(answer->topics[0].partitions[1].partition, 2);
  EXPECT_EQ(answer->topics[0].partitions[1].error, ErrorCode::not_leader_or_follower);
  EXPECT_EQ(answer->topics[0].partitions[1].message, "elsewhere");
  ASSERT_THAT(answer->topics[1].partitions, SizeIs(1));
  EXPECT_EQ(answer->topics[1].partitions[0].base_offset, Offset{40});
}

TEST_F(RecordLinkTest, OffsetsAreFound) {
  broker_.on_list_offsets = [](const ListOffsetsRequest& request) {
    EXPECT_EQ(request.replica_id, -1);
    EXPECT_EQ(request.isolation, Isolation::read_committed);
    const auto& asked = request.topics.at(0).partitions.at(0);
    EXPECT_EQ(asked.timestamp, -1);
    ListOffsetsAnswer answer;
    auto& found = answer.topics.emplace_back(TopicOffsetsFound{request.topics[0].topic, {}});
    found.partitions.push_back(
        {.partition = asked.partition, .offset = {77}, .leader_epoch = {5}, .segments = {}});
    return answer;
  };
  const auto answer = on_a([this] {
    ListOffsetsRequest request{.isolation = Isolation::read_committed, .topics = {}};
    request.topics.push_back({"words", {{.partition = 3, .timestamp = -1}}});
    return peer_->list_offsets(std::move(request));
  });
  ASSERT_TRUE(answer) << to_string(answer.error());
  ASSERT_THAT(answer->topics, SizeIs(1));
  EXPECT_EQ(answer->topics[0].topic, "words");
  ASSERT_THAT(answer->topics[0].partitions, SizeIs(1));
  EXPECT_EQ(answer->topics[0].partitions[0].partition, 3);
  EXPECT_EQ(answer->topics[0].partitions[0].offset, Offset{77});
  EXPECT_EQ(answer->topics[0].partitions[0].leader_epoch, Epoch{5});
}

TEST_F(RecordLinkTest, AConnectionThatEndsFailsItsCalls) {
  broker_.hold_produce = true;
  const auto answer = on_a([this]() -> Task<ProduceAnswer> {
    Shard& here = co_await this_shard();
    auto asking = millrace::start(here, peer_->produce(produce()));
    world_.cut(a_, b_);
    co_return co_await asking;
  });
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().code, Errc::timed_out);
}

}  // namespace
}  // namespace millrace::kafka_transport::testing
