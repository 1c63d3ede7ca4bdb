// Offsets: committed, asked for, deleted.
#include "bench.h"

namespace millrace::consumer_groups::testing {
namespace {

class OffsetsTest : public Bench {
 public:
  Client simple{.group = "s"};  // no member: assigns itself
  Client member{.client_id = "m"};

  static OffsetCommitRequest request_of(const TopicName& topic, PartitionCommit partition) {
    OffsetCommitRequest request{.group = "s"};
    request.topics.push_back({.topic = topic});
    request.topics.back().partitions.push_back(std::move(partition));
    return request;
  }
  ErrorCode commit_of(OffsetCommitRequest request) {
    return ask<OffsetCommitAnswer>("s", std::move(request)).at(0).partitions.at(0).error;
  }
  GroupOffsets::Partition stored(const TopicName& topic, bool require_stable = false) {
    GroupOffsetsQuery query{.group = "s"};
    query.topics.emplace().push_back({topic, {0}});
    return ask<GroupOffsets>("s", FetchOffsets{query, require_stable})
        .topics.at(0)
        .partitions.at(0);
  }
};

TEST_F(OffsetsTest, AreKeptAsTheyWereCommitted) {
  EXPECT_EQ(commit_of(request_of(
                {.name = "orders"},
                {.partition = 0, .offset = {42}, .leader_epoch = {7}, .metadata = "half-way"})),
            ErrorCode::none);
  const auto kept = stored({.name = "orders"});
  EXPECT_EQ(kept.error, ErrorCode::none);
  EXPECT_EQ(kept.offset, Offset{42});
  EXPECT_EQ(kept.leader_epoch, Epoch{7});
  EXPECT_EQ(kept.metadata, "half-way");
  ASSERT_TRUE(driver.reload());
  EXPECT_EQ(stored({.name = "orders"}).metadata, "half-way");
}

TEST_F(OffsetsTest, WhereNothingIsCommittedIsMinusOne) {
  const auto nothing = stored({.name = "orders"});
  EXPECT_EQ(nothing.error, ErrorCode::none);
  EXPECT_EQ(nothing.offset, Offset{-1});
  EXPECT_EQ(nothing.leader_epoch, Epoch{-1});
  EXPECT_EQ(nothing.metadata, "");
  EXPECT_TRUE(offsets("nobody").topics.empty());
}

TEST_F(OffsetsTest, TheNewestCounts) {
  EXPECT_EQ(commit_error(simple, 5), ErrorCode::none);
  EXPECT_EQ(commit_error(simple, 3), ErrorCode::none);
  EXPECT_EQ(offset_of("s"), 3);
}

TEST_F(OffsetsTest, OfTopicsAndPartitionsThatExist) {
  EXPECT_EQ(commit_error(simple, 1, "nothing"), ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(commit_error(simple, 1, "orders", 4), ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(commit_error(simple, 1, "orders", -1), ErrorCode::unknown_topic_or_partition);
  EXPECT_TRUE(list().empty());
}

TEST_F(OffsetsTest, AnErrorOfOnePartitionLeavesTheOthersBe) {
  OffsetCommitRequest request{.group = "s"};
  request.topics = {{{.name = "orders"}, {{.partition = 0, .offset = {1}}, {.partition = 9}}},
                    {{.name = "nothing"}, {{.partition = 0}}},
                    {{.name = "bills"}, {{.partition = 1, .offset = {2}}}}};
  const auto answer = ask<OffsetCommitAnswer>("s", std::move(request));
  ASSERT_EQ(answer.size(), 3U);
  EXPECT_EQ(answer[0].partitions[0].error, ErrorCode::none);
  EXPECT_EQ(answer[0].partitions[1].error, ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(answer[1].topic.name, "nothing");
  EXPECT_EQ(answer[1].partitions[0].error, ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(answer[2].partitions[0].error, ErrorCode::none);
  const auto all = offsets("s");
  ASSERT_EQ(all.topics.size(), 2U);
  EXPECT_EQ(all.topics[0].topic.name, "bills");
  EXPECT_EQ(all.topics[0].partitions.at(0).partition, 1);
}

TEST_F(OffsetsTest, ByTheTopicsId) {
  const auto id = driver.cluster().find("orders")->id;
  const Uuid unknown{{1, 2, 3}};
  EXPECT_EQ(commit_of(request_of({.id = id}, {.partition = 0, .offset = {6}})), ErrorCode::none);
  EXPECT_EQ(commit_of(request_of({.id = unknown}, {.partition = 0})), ErrorCode::unknown_topic_id);
  EXPECT_EQ(commit_of(request_of({.id = id}, {.partition = 8})),
            ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(stored({.id = id}).offset, Offset{6});
  EXPECT_EQ(stored({.id = unknown}).error, ErrorCode::unknown_topic_id);
  EXPECT_EQ(stored({.id = driver.cluster().find("bills")->id}).offset, Offset{-1});
  EXPECT_EQ(offsets("s").topics.at(0).topic.id, id);
  EXPECT_EQ(offset_of("s"), 6);
}

TEST_F(OffsetsTest, MetadataHasALimitInCharacters) {
  const auto with = [&](std::string metadata) {
    return commit_of(request_of({.name = "orders"},
                                {.partition = 0, .offset = {1}, .metadata = std::move(metadata)}));
  };
  EXPECT_EQ(with(std::string(4096, 'm')), ErrorCode::none);
  EXPECT_EQ(with(std::string(4097, 'm')), ErrorCode::offset_metadata_too_large);
  std::string umlauts;
  for (int at = 0; at < 4096; ++at) umlauts += "\xc3\xbc";
  EXPECT_EQ(with(umlauts), ErrorCode::none);
  EXPECT_EQ(with(umlauts + "u"), ErrorCode::offset_metadata_too_large);
  driver.set("offset.metadata.max.bytes", "10");
  driver.advance(1s);
  EXPECT_EQ(with("01234567890"), ErrorCode::offset_metadata_too_large);
}

TEST_F(OffsetsTest, OfAGroupWithMembersOnlyMembersCommit) {
  make_stable({&member});
  EXPECT_EQ(commit_error(member, 1), ErrorCode::none);
  EXPECT_EQ(commit_error({}, 2), ErrorCode::unknown_member_id);
  EXPECT_EQ(offset_of("g"), 1);
  (void)leave(member);
  EXPECT_EQ(commit_error({}, 3), ErrorCode::none);
  EXPECT_EQ(commit_error(member, 4), ErrorCode::unknown_member_id);
}

TEST_F(OffsetsTest, AMemberOfAGroupThatIsNotThereHasAnOldGeneration) {
  Client old{.member_id = "m", .generation = 3};
  EXPECT_EQ(commit_error(old, 1), ErrorCode::illegal_generation);
  auto request = request_of({.name = "orders"}, {.partition = 0, .offset = {1}});
  request.generation = 3;
  request.member_id = "m";
  request.fenced_by_member_epoch = true;
  EXPECT_EQ(commit_of(request), ErrorCode::group_id_not_found);
  EXPECT_EQ(commit_error(simple, 1), ErrorCode::none);
  EXPECT_EQ(commit_of(request), ErrorCode::unknown_member_id);  // a group without members
}

// G11.
TEST_F(OffsetsTest, ACommitInARebalanceCountsUntilTheNextGenerationBegins) {
  make_stable({&member});
  Client other{.client_id = "o"};
  const auto joining_other = begin_join(other);
  EXPECT_EQ(state(), "PreparingRebalance");
  EXPECT_EQ(commit_error(member, 10), ErrorCode::none);
  const auto joining = send_join(member);
  const auto before = member;
  (void)end_join(member, joining);
  (void)end_join(other, joining_other);
  EXPECT_EQ(commit_error(member, 11), ErrorCode::rebalance_in_progress);
  EXPECT_EQ(commit_error(before, 12), ErrorCode::illegal_generation);
  sync_all({&member, &other});
  EXPECT_EQ(commit_error(member, 13), ErrorCode::none);
  EXPECT_EQ(commit_error(before, 14), ErrorCode::illegal_generation);
  EXPECT_EQ(heartbeat(other), ErrorCode::none);
  EXPECT_EQ(offset_of("g"), 13);
}

TEST_F(OffsetsTest, ACommitIsASignOfLife) {
  make_stable({&member});
  for (int at = 0; at < 5; ++at) {
    driver.advance(8s);
    EXPECT_EQ(commit_error(member, at), ErrorCode::none);
  }
  EXPECT_EQ(heartbeat(member), ErrorCode::none);
}

TEST_F(OffsetsTest, ACommitThatIsNotWrittenIsNotThere) {
  EXPECT_EQ(commit_error(simple, 1), ErrorCode::none);
  driver.fail_appends();
  auto request = request_of({.name = "orders"}, {.partition = 0, .offset = {2}});
  EXPECT_EQ(driver.error(send("s", request)), ErrorCode::coordinator_not_available);
  EXPECT_EQ(offset_of("s"), 1);
}

TEST_F(OffsetsTest, NobodySeesACommitBeforeItStays) {
  driver.hold_high_watermark();
  const auto committing =
      send("s", request_of({.name = "orders"}, {.partition = 0, .offset = {2}}));
  const auto asking = send("s", FetchOffsets{{.group = "s"}, false});
  EXPECT_TRUE(waits(committing));
  EXPECT_TRUE(waits(asking));
  driver.release_high_watermark();
  EXPECT_EQ(taken<OffsetCommitAnswer>(committing).at(0).partitions.at(0).error, ErrorCode::none);
  EXPECT_EQ(taken<GroupOffsets>(asking).topics.size(), 1U);
}

TEST_F(OffsetsTest, AreDeletedWhereNobodyReads) {
  EXPECT_EQ(ask<OffsetsDeleted>("s", OffsetDeletion{"s", {}}).error, ErrorCode::group_id_not_found);
  make_stable({&member});
  EXPECT_EQ(commit_error(member, 1), ErrorCode::none);
  EXPECT_EQ(commit_error(member, 2, "bills"), ErrorCode::none);
  const auto deleted = ask<OffsetsDeleted>(
      "g", OffsetDeletion{"g", {{"orders", {0}}, {"bills", {0, 1, 2}}, {"nothing", {0}}}});
  EXPECT_EQ(deleted.error, ErrorCode::none);
  ASSERT_EQ(deleted.topics.size(), 3U);
  EXPECT_EQ(deleted.topics[0].partitions[0].error, ErrorCode::group_subscribed_to_topic);
  EXPECT_EQ(deleted.topics[1].partitions[0].error, ErrorCode::none);
  EXPECT_EQ(deleted.topics[1].partitions[1].error, ErrorCode::none);
  EXPECT_EQ(deleted.topics[1].partitions[2].error, ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(deleted.topics[2].partitions[0].error, ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(offset_of("g"), 1);
  EXPECT_EQ(offset_of("g", "bills"), -1);
  ASSERT_TRUE(driver.reload());
  EXPECT_EQ(offset_of("g", "bills"), -1);
}

TEST_F(OffsetsTest, GoWithTheirGroup) {
  EXPECT_EQ(ask<GroupDeleted>("s", Remove{}).error, ErrorCode::group_id_not_found);
  EXPECT_EQ(commit_error(simple, 1), ErrorCode::none);
  EXPECT_EQ(commit_error(simple, 1, "bills", 1), ErrorCode::none);
  EXPECT_EQ(ask<GroupDeleted>("s", Remove{}).error, ErrorCode::none);
  EXPECT_EQ(offset_of("s"), -1);
  EXPECT_TRUE(list().empty());
  make_stable({&member});
  EXPECT_EQ(commit_error(member, 1), ErrorCode::none);
  EXPECT_EQ(ask<GroupDeleted>("g", Remove{}).error, ErrorCode::non_empty_group);
  (void)leave(member);
  EXPECT_EQ(ask<GroupDeleted>("g", Remove{}).error, ErrorCode::none);
  EXPECT_TRUE(list().empty());
  driver.compact(false);
  ASSERT_TRUE(driver.reload());
  EXPECT_TRUE(list().empty());
  EXPECT_TRUE(driver.log().empty());
}

// ---- transactions ----

class TransactionalOffsetsTest : public OffsetsTest {
 public:
  static constexpr millrace::testing::RecordProducer producer{77, 3, true};

  void commit_in_transaction(std::int64_t offset) {
    kafka::OffsetCommitKey key;
    key.group = "s";
    key.topic = "orders";
    kafka::OffsetCommitValue value;
    value.offset = offset;
    const auto key_bytes = *encode_key(key);
    const auto value_bytes = *encode_value(value, 3);
    ASSERT_TRUE(driver.write(key_bytes.text(), value_bytes.text(), producer));
  }
};

TEST_F(TransactionalOffsetsTest, CountOnceTheTransactionIsCommitted) {
  EXPECT_EQ(commit_error(simple, 1), ErrorCode::none);
  commit_in_transaction(9);
  EXPECT_EQ(stored({.name = "orders"}).offset, Offset{1});
  const auto unstable = stored({.name = "orders"}, true);
  EXPECT_EQ(unstable.error, ErrorCode::unstable_offset_commit);
  EXPECT_EQ(unstable.offset, Offset{-1});
  EXPECT_EQ(offsets("s", true).topics.at(0).partitions.at(0).error,
            ErrorCode::unstable_offset_commit);
  ASSERT_TRUE(driver.take_snapshot());
  ASSERT_TRUE(driver.reload());
  EXPECT_EQ(stored({.name = "orders"}, true).error, ErrorCode::unstable_offset_commit);
  driver.end_transaction(77, 3, true);
  EXPECT_EQ(stored({.name = "orders"}, true).offset, Offset{9});
}

TEST_F(TransactionalOffsetsTest, AreForgottenWhenItIsAborted) {
  commit_in_transaction(9);
  EXPECT_EQ(stored({.name = "orders"}).offset, Offset{-1});
  driver.end_transaction(77, 3, false);
  EXPECT_EQ(stored({.name = "orders"}, true).error, ErrorCode::none);
  EXPECT_EQ(stored({.name = "orders"}).offset, Offset{-1});
  EXPECT_TRUE(list().empty());
}

TEST_F(TransactionalOffsetsTest, DoNotReplaceWhatWasCommittedLater) {
  commit_in_transaction(9);
  EXPECT_EQ(commit_error(simple, 12), ErrorCode::none);
  driver.end_transaction(77, 3, true);
  EXPECT_EQ(offset_of("s"), 12);
}

TEST_F(TransactionalOffsetsTest, DoNotComeBackAfterTheyWereDeleted) {
  commit_in_transaction(9);
  EXPECT_EQ(ask<GroupDeleted>("s", Remove{}).error, ErrorCode::none);
  driver.end_transaction(77, 3, true);
  EXPECT_EQ(offset_of("s"), -1);
  EXPECT_TRUE(list().empty());
}

// Kafka looks at no offset that is committed; clients do, before they send it.
TEST_F(OffsetsTest, AnyOffsetIsKept) {
  EXPECT_EQ(commit_error({.group = "tool"}, -5), ErrorCode::none);
  EXPECT_EQ(offset_of("tool"), -5);
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
