// Committed offsets from a client's request to the groups' service and back, every version of each.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/kafka/heartbeat.h>
#include <millrace/kafka/offset_commit.h>
#include <millrace/kafka/offset_delete.h>
#include <millrace/kafka/offset_fetch.h>

#include "group_fakes.h"

namespace millrace::kafka_transport::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

constexpr std::int16_t code(ErrorCode error) { return static_cast<std::int16_t>(error); }
constexpr Uuid some_id{{1, 2, 3}};

class GroupOffsetsTest : public GroupsFixture {
 protected:
  GroupOffsetsTest() { connect(); }
};

// ---- OffsetCommit ----

kafka::OffsetCommitRequest commit_request(std::int16_t version) {
  kafka::OffsetCommitRequest request;
  request.group_id = "readers";
  if (version >= 1) request.generation_id_or_member_epoch = 7;
  if (version >= 1) request.member_id = "m-1";
  if (version >= 7) request.group_instance_id = "static-1";
  if (version >= 2 && version <= 4) request.retention_time_ms = 5000;
  auto& topic = request.topics.emplace_back();
  if (version < 10) topic.name = "orders";
  if (version >= 10) topic.topic_id = some_id;
  auto& partition = topic.partitions.emplace_back();
  partition.partition_index = 3;
  partition.committed_offset = 42;
  if (version >= 6) partition.committed_leader_epoch = 2;
  if (version == 1) partition.commit_timestamp = 1234;
  partition.committed_metadata = "note";
  topic.partitions.push_back(partition);
  topic.partitions.back().partition_index = 4;
  topic.partitions.back().committed_metadata.reset();
  return request;
}

TEST_F(GroupOffsetsTest, OffsetCommitBringsAllThatItsVersionHas) {
  groups.commit_error = ErrorCode::offset_metadata_too_large;
  for (std::int16_t version = 0; version <= 10; ++version) {
    SCOPED_TRACE(version);
    const auto answer = ask(version, commit_request(version));
    const auto& commit = groups.commits.back().request;
    EXPECT_EQ(commit.group, "readers");
    EXPECT_EQ(commit.generation, version >= 1 ? 7 : -1);
    EXPECT_EQ(commit.member_id, version >= 1 ? "m-1" : "");
    EXPECT_EQ(commit.instance_id.has_value(), version >= 7);
    EXPECT_EQ(commit.retention.has_value(), version >= 2 && version <= 4);
    EXPECT_EQ(commit.fenced_by_member_epoch, version >= 9);
    ASSERT_THAT(commit.topics, SizeIs(1));
    EXPECT_EQ(commit.topics[0].topic.name, version < 10 ? "orders" : "");
    EXPECT_EQ(commit.topics[0].topic.id, version >= 10 ? some_id : Uuid());
    ASSERT_THAT(commit.topics[0].partitions, SizeIs(2));
    const auto& partition = commit.topics[0].partitions[0];
    EXPECT_EQ(partition.partition, 3);
    EXPECT_EQ(partition.offset.value, 42);
    EXPECT_EQ(partition.leader_epoch.value, version >= 6 ? 2 : -1);
    EXPECT_EQ(partition.commit_timestamp.ms, version == 1 ? 1234 : -1);
    EXPECT_EQ(partition.metadata, "note");
    EXPECT_FALSE(commit.topics[0].partitions[1].metadata);

    ASSERT_THAT(answer.topics, SizeIs(1));
    EXPECT_EQ(answer.topics[0].name, version < 10 ? "orders" : "");
    EXPECT_EQ(answer.topics[0].topic_id, version >= 10 ? some_id : Uuid());
    EXPECT_EQ(answer.topics[0].partitions.at(1).partition_index, 4);
    EXPECT_EQ(answer.topics[0].partitions.at(1).error_code,
              code(ErrorCode::offset_metadata_too_large));
  }
}

TEST_F(GroupOffsetsTest, CommitsKeepTheirOrderWithoutWaitingForEachOther) {
  groups.hold = true;
  push(frame(7, 1, commit_request(7)) + frame(7, 2, commit_request(7)));
  ASSERT_THAT(groups.commits, SizeIs(1));
  groups.commits[0].dispatched.resolve();
  shard.run();
  ASSERT_THAT(groups.commits, SizeIs(2));
  groups.commits[1].dispatched.resolve();
  groups.commits[1].done.resolve(OffsetCommitAnswer());
  shard.run();
  EXPECT_THAT(answered(), IsEmpty());
  groups.commits[0].done.resolve(OffsetCommitAnswer());
  shard.run();
  EXPECT_THAT(answered(), ElementsAre(1, 2));
}

TEST_F(GroupOffsetsTest, ACommitIsAnsweredThoughThePeerHasClosedItsSide) {
  groups.hold = true;
  push(frame(7, 1, commit_request(7)));
  groups.commits[0].dispatched.resolve();
  wire.close_peer();
  shard.run();
  groups.commits[0].done.resolve(OffsetCommitAnswer());
  shard.run();
  EXPECT_THAT(answered(), ElementsAre(1));
}

// ---- OffsetFetch ----

kafka::OffsetFetchRequest fetch_request(std::int16_t version) {
  kafka::OffsetFetchRequest request;
  if (version < 8) {
    request.group_id = "readers";
    auto& topic = request.topics.emplace().emplace_back();
    topic.name = "orders";
    topic.partition_indexes = {3, 1};
  } else {
    auto& group = request.groups.emplace_back();
    group.group_id = "readers";
    if (version >= 9) group.member_id = "m-1";
    if (version >= 9) group.member_epoch = 5;
    auto& topic = group.topics.emplace().emplace_back();
    if (version < 10) topic.name = "orders";
    if (version >= 10) topic.topic_id = some_id;
    topic.partition_indexes = {3, 1};
    auto& all = request.groups.emplace_back();
    all.group_id = "others";
    all.topics.reset();
  }
  request.require_stable = version >= 7;
  return request;
}

TEST_F(GroupOffsetsTest, OffsetFetchAsksForPartitionsOfAGroup) {
  for (std::int16_t version = 0; version <= 7; ++version) {
    SCOPED_TRACE(version);
    const auto answer = ask(version, fetch_request(version));
    const auto& asked = groups.offsets_asked.back();
    ASSERT_THAT(asked, SizeIs(1));
    EXPECT_EQ(asked[0].group, "readers");
    EXPECT_FALSE(asked[0].member_id);
    EXPECT_EQ(asked[0].topics->at(0).topic.name, "orders");
    EXPECT_THAT(asked[0].topics->at(0).partitions, ElementsAre(3, 1));
    EXPECT_EQ(groups.stable_asked.back(), version >= 7);
    ASSERT_THAT(answer.topics, SizeIs(1));
    const auto& partition = answer.topics[0].partitions.at(0);
    EXPECT_EQ(partition.partition_index, 3);
    EXPECT_EQ(partition.committed_offset, 103);
    EXPECT_EQ(partition.committed_leader_epoch, version >= 5 ? 3 : -1);
    EXPECT_EQ(partition.metadata, "kept");
  }
}

TEST_F(GroupOffsetsTest, OffsetFetchAsksForManyGroups) {
  groups.all_offsets.push_back(
      {{"orders", some_id}, {{.partition = 0, .offset = {9}, .leader_epoch = {}, .metadata = {}}}});
  for (std::int16_t version = 8; version <= 10; ++version) {
    SCOPED_TRACE(version);
    const auto answer = ask(version, fetch_request(version));
    const auto& asked = groups.offsets_asked.back();
    ASSERT_THAT(asked, SizeIs(2));
    EXPECT_EQ(asked[0].member_id.has_value(), version >= 9);
    EXPECT_EQ(asked[0].member_epoch, version >= 9 ? 5 : -1);
    EXPECT_EQ(asked[0].topics->at(0).topic.name, version < 10 ? "orders" : "");
    EXPECT_EQ(asked[0].topics->at(0).topic.id, version >= 10 ? some_id : Uuid());
    EXPECT_FALSE(asked[1].topics);
    ASSERT_THAT(answer.groups, SizeIs(2));
    EXPECT_EQ(answer.groups[0].topics.at(0).partitions.at(1).committed_offset, 101);
    EXPECT_EQ(answer.groups[0].topics.at(0).topic_id, version >= 10 ? some_id : Uuid());
    EXPECT_EQ(answer.groups[1].group_id, "others");
    EXPECT_EQ(answer.groups[1].topics.at(0).name, version < 10 ? "orders" : "");
    EXPECT_EQ(answer.groups[1].topics.at(0).partitions.at(0).committed_offset, 9);
  }
}

TEST_F(GroupOffsetsTest, AGroupsErrorIsOfItsPartitionsBeforeTwo) {
  groups.offsets_error = ErrorCode::not_coordinator;
  for (std::int16_t version = 0; version <= 10; ++version) {
    SCOPED_TRACE(version);
    const auto answer = ask(version, fetch_request(version));
    if (version < 2) {
      ASSERT_THAT(answer.topics, SizeIs(1));
      const auto& partition = answer.topics[0].partitions.at(1);
      EXPECT_EQ(partition.partition_index, 1);
      EXPECT_EQ(partition.error_code, code(ErrorCode::not_coordinator));
      EXPECT_EQ(partition.committed_offset, -1);
    } else if (version < 8) {
      EXPECT_EQ(answer.error_code, code(ErrorCode::not_coordinator));
      EXPECT_THAT(answer.topics, IsEmpty());
    } else {
      EXPECT_EQ(answer.groups.at(1).error_code, code(ErrorCode::not_coordinator));
    }
  }
}

TEST_F(GroupOffsetsTest, OffsetFetchOfAllTopicsIsNull) {
  for (std::int16_t version = 2; version <= 7; ++version) {
    kafka::OffsetFetchRequest request;
    request.group_id = "readers";
    request.topics.reset();
    ask(version, request);
    EXPECT_FALSE(groups.offsets_asked.back().at(0).topics);
    request.topics.emplace();
    ask(version, request);
    EXPECT_TRUE(groups.offsets_asked.back().at(0).topics);
  }
}

// ---- OffsetDelete ----

TEST_F(GroupOffsetsTest, OffsetDeleteNamesPartitions) {
  groups.offsets_deleted.topics.push_back(
      {"orders", {{.partition = 1, .error = ErrorCode::group_subscribed_to_topic}}});
  kafka::OffsetDeleteRequest request;
  request.group_id = "readers";
  request.topics.emplace_back("orders").partitions.emplace_back(1);
  const auto answer = ask(0, request);
  ASSERT_THAT(groups.deletions, SizeIs(1));
  EXPECT_EQ(groups.deletions[0].group, "readers");
  EXPECT_THAT(groups.deletions[0].topics.at(0).partitions, ElementsAre(1));
  EXPECT_EQ(answer.topics.at(0).partitions.at(0).error_code,
            code(ErrorCode::group_subscribed_to_topic));
}

}  // namespace
}  // namespace millrace::kafka_transport::testing
