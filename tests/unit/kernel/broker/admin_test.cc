// Topics grown, records removed, and what a broker tells of itself, across two shards.
#include <algorithm>

#include "broker_fixture.h"

namespace millrace::kernel {
namespace {

using std::chrono::seconds;

class AdminTest : public BrokerTest {
 protected:
  Admin& admin() { return broker_->admin(); }

  TopicGrown grow(TopicGrowth wanted, bool validate_only = false) {
    GrowTopicsRequest request{
        .topics = {std::move(wanted)}, .timeout = seconds(1), .validate_only = validate_only};
    auto grown = on_shard(0, [&] { return admin().grow_topics(session(0), request); });
    EXPECT_TRUE(grown) << to_string(grown.error());
    return grown->at(0);
  }
  std::size_t partitions_of(const std::string& topic) {
    const MetadataRequest request{.topics = std::vector<TopicName>{{topic, {}}}};
    auto answer = on_shard(1, [&] { return broker_->metadata(session(1), request); });
    EXPECT_TRUE(answer) << to_string(answer.error());
    return answer->topics.at(0).partitions.size();
  }
  PartitionTrimmed trim(const std::string& topic, PartitionTrim wanted) {
    return trim({.topics = {{topic, {wanted}}}, .timeout = seconds(5)}).at(0).partitions.at(0);
  }
  std::vector<TopicTrimmed> trim(TrimRequest request) {
    auto trimmed = on_shard(0, [&] { return admin().trim(session(0), request); });
    EXPECT_TRUE(trimmed) << to_string(trimmed.error());
    return *std::move(trimmed);
  }
  void produce_many(const std::string& topic, std::int32_t partition, int records) {
    for (int n = 0; n < records; ++n) {
      const auto produced = produce(0, produce_request(topic, {partition}, std::to_string(n)));
      ASSERT_TRUE(produced);
      ASSERT_EQ(produced->topics[0].partitions[0].error, ErrorCode::none);
    }
  }
  PartitionOffsetFound find(const std::string& topic, std::int32_t partition,
                            std::int64_t timestamp) {
    ListOffsetsRequest request;
    request.topics.push_back({topic, {{.partition = partition, .timestamp = timestamp}}});
    auto found = on_shard(1, [&] { return broker_->list_offsets(session(1), request); });
    EXPECT_TRUE(found) << to_string(found.error());
    return found->topics.at(0).partitions.at(0);
  }
  TopicPage page(TopicPageRequest request) {
    auto described = on_shard(0, [&] { return admin().describe_topics(session(0), request); });
    EXPECT_TRUE(described) << to_string(described.error());
    return *std::move(described);
  }
};

// ---- growth ----

TEST_F(AdminTest, AGrownTopicTakesRecordsInItsNewPartitionsOnEveryShard) {
  create("orders", 2);
  produce_many("orders", 1, 3);
  const auto grown = grow({.name = "orders", .partitions = 5});
  EXPECT_EQ(grown.error, ErrorCode::none) << grown.message;
  EXPECT_EQ(partitions_of("orders"), 5u);
  for (std::int32_t partition = 0; partition < 5; ++partition) {
    produce_many("orders", partition, 1);
  }
  const auto fetched = fetch(1, fetch_request("orders", {{.partition = 1, .from = Offset{0}}}));
  ASSERT_TRUE(fetched);
  EXPECT_EQ(values_of(fetched->topics[0].partitions[0]).size(), 4u);
}

TEST_F(AdminTest, AGrownTopicStaysGrown) {
  create("orders", 1);
  EXPECT_EQ(grow({.name = "orders", .partitions = 3}).error, ErrorCode::none);
  restart();
  EXPECT_EQ(partitions_of("orders"), 3u);
  EXPECT_EQ(grow({.name = "orders", .partitions = 4}).error, ErrorCode::none);
}

TEST_F(AdminTest, ATopicDoesNotShrinkAndIsNotMade) {
  create("orders", 3);
  const auto same = grow({.name = "orders", .partitions = 3});
  EXPECT_EQ(same.error, ErrorCode::invalid_partitions);
  EXPECT_EQ(same.message, "Topic already has 3 partition(s).");
  const auto fewer = grow({.name = "orders", .partitions = 2});
  EXPECT_EQ(fewer.error, ErrorCode::invalid_partitions);
  EXPECT_EQ(fewer.message,
            "The topic orders currently has 3 partition(s); 2 would not be an increase.");
  EXPECT_EQ(grow({.name = "nowhere", .partitions = 2}).error,
            ErrorCode::unknown_topic_or_partition);
}

TEST_F(AdminTest, ValidateOnlyGrowsNothing) {
  create("orders", 1);
  EXPECT_EQ(grow({.name = "orders", .partitions = 9}, true).error, ErrorCode::none);
  EXPECT_EQ(partitions_of("orders"), 1u);
  EXPECT_EQ(grow({.name = "orders", .partitions = 1}, true).error, ErrorCode::invalid_partitions);
}

// ---- records removed ----

TEST_F(AdminTest, RemovedRecordsAreGoneForReadersAndForSearches) {
  create("orders", 2);
  produce_many("orders", 1, 10);
  const auto trimmed = trim("orders", {.partition = 1, .before = Offset{6}});
  EXPECT_EQ(trimmed.error, ErrorCode::none);
  EXPECT_EQ(trimmed.log_start, Offset{6});
  const auto earliest = static_cast<std::int64_t>(OffsetSpec::earliest);
  EXPECT_EQ(find("orders", 1, earliest).offset, Offset{6});
  EXPECT_EQ(find("orders", 1, 0).offset, Offset{6});
  const auto below = fetch(0, fetch_request("orders", {{.partition = 1, .from = Offset{5}}}));
  ASSERT_TRUE(below);
  EXPECT_EQ(below->topics[0].partitions[0].error, ErrorCode::offset_out_of_range);
}

TEST_F(AdminTest, NoneMeansAllBelowTheHighWatermark) {
  create("orders", 1);
  produce_many("orders", 0, 3);
  const auto hold = [this](bool held) {
    return world_.run(node_.control(),
                      [&] { return broker_->hold_high_watermark({"orders", 0}, held); });
  };
  ASSERT_TRUE(hold(true));
  const auto produced = produce(0, produce_request("orders", {0}, "unseen", 1));
  ASSERT_TRUE(produced);
  EXPECT_EQ(trim("orders", {.partition = 0, .before = Offset{4}}).error,
            ErrorCode::offset_out_of_range);
  EXPECT_EQ(trim("orders", {.partition = 0}).log_start, Offset{3});
  ASSERT_TRUE(hold(false));
  EXPECT_EQ(trim("orders", {.partition = 0}).log_start, Offset{4});
  EXPECT_EQ(trim("orders", {.partition = 0, .before = Offset{2}}).log_start, Offset{4});
}

TEST_F(AdminTest, WhatMayNotBeRemovedStays) {
  NewTopic compacted;
  compacted.name = "compacted";
  compacted.configs = {{"cleanup.policy", "compact"}};
  ASSERT_EQ(create(compacted).at(0).error, ErrorCode::none);
  NewTopic both;
  both.name = "both";
  both.configs = {{"cleanup.policy", "compact,delete"}};
  ASSERT_EQ(create(both).at(0).error, ErrorCode::none);
  create("__consumer_offsets", 1);
  EXPECT_EQ(trim("compacted", {.partition = 0}).error, ErrorCode::policy_violation);
  EXPECT_EQ(trim("both", {.partition = 0}).error, ErrorCode::none);
  EXPECT_EQ(trim("__consumer_offsets", {.partition = 0}).error, ErrorCode::invalid_topic_exception);
  EXPECT_EQ(trim("both", {.partition = 1}).error, ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(trim("both", {.partition = 0, .before = Offset{-2}}).error,
            ErrorCode::offset_out_of_range);
}

TEST_F(AdminTest, AnswersStandInTheOrderOfTheRequest) {
  create("a", 3);
  create("b", 2);
  const auto trimmed =
      trim({.topics = {{"b", {{.partition = 1}, {.partition = 7}, {.partition = 0}}},
                       {"a", {{.partition = 2}, {.partition = 1}}}},
            .timeout = seconds(5)});
  ASSERT_EQ(trimmed.size(), 2u);
  EXPECT_EQ(trimmed[0].topic, "b");
  EXPECT_EQ(trimmed[0].partitions[0].partition, 1);
  EXPECT_EQ(trimmed[0].partitions[1].partition, 7);
  EXPECT_EQ(trimmed[0].partitions[1].error, ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(trimmed[0].partitions[2].partition, 0);
  EXPECT_EQ(trimmed[1].partitions[0].partition, 2);
  EXPECT_EQ(trimmed[1].partitions[1].error, ErrorCode::none);
}

TEST_F(AdminTest, OffsetsAreUniqueWhileTrimsRaceAppends) {
  create("orders", 1);
  std::vector<std::int64_t> offsets;
  bool produced_all = false;
  bool trimmed_all = false;
  constexpr int rounds = 50;
  const auto produce_all = [&]() -> Task<> {
    for (int n = 0; n < rounds; ++n) {
      auto call = broker_->produce(session(0), produce_request("orders", {0}, "x"));
      MR_CO_CHECK(co_await call.dispatched);
      MR_CO_TRY(const auto answer, co_await call.done);
      offsets.push_back(answer.topics[0].partitions[0].base_offset.value);
    }
    produced_all = true;
    co_return {};
  };
  const auto trim_all = [&]() -> Task<> {
    for (int n = 0; n < rounds; ++n) {
      TrimRequest request{.topics = {{"orders", {{.partition = 0}}}}, .timeout = seconds(5)};
      MR_CO_TRY(const auto answer, co_await admin().trim(session(1), std::move(request)));
      EXPECT_EQ(answer[0].partitions[0].error, ErrorCode::none);
    }
    trimmed_all = true;
    co_return {};
  };
  auto& first = *node_.shards()[0];
  auto& second = *node_.shards()[1];
  first.post([&] { spawn(first, produce_all(), "produce"); });
  second.post([&] { spawn(second, trim_all(), "trim"); });
  ASSERT_TRUE(world_.run_until([&] { return produced_all && trimmed_all; }, seconds(60)));
  for (std::size_t at = 0; at < offsets.size(); ++at) {
    EXPECT_EQ(offsets[at], static_cast<std::int64_t>(at));
  }
}

// ---- epochs ----

TEST_F(AdminTest, EndsOfEpochsCheckWhatTheAskerBelieves) {
  create("orders", 2);
  produce_many("orders", 0, 3);
  const auto ask = [this](const std::string& topic, PartitionEpochQuery query) {
    const std::vector<TopicEpochQuery> queries{{topic, {query}}};
    auto ends = on_shard(1, [&] { return broker_->epoch_ends(session(1), queries); });
    EXPECT_TRUE(ends) << to_string(ends.error());
    return ends->at(0).partitions.at(0);
  };
  const auto end = ask("orders", {.partition = 0, .epoch = Epoch{0}});
  EXPECT_EQ(end.error, ErrorCode::none);
  EXPECT_EQ(end.epoch, Epoch{0});
  EXPECT_EQ(end.end, Offset{3});
  const auto newer = ask("orders", {.partition = 0, .epoch = Epoch{5}});
  EXPECT_EQ(newer.error, ErrorCode::none);
  EXPECT_EQ(newer.epoch, Epoch{});
  EXPECT_EQ(newer.end, Offset{});
  const auto believing = [&](std::int32_t epoch) {
    return ask("orders", {.partition = 0, .current_leader_epoch = Epoch{epoch}, .epoch = Epoch{0}})
        .error;
  };
  EXPECT_EQ(believing(0), ErrorCode::none);
  EXPECT_EQ(believing(1), ErrorCode::unknown_leader_epoch);
  EXPECT_EQ(ask("nowhere", {.partition = 0}).error, ErrorCode::unknown_topic_or_partition);
}

// ---- descriptions ----

TEST_F(AdminTest, APageEndsWhereItIsFullAndTheNextGoesOnThere) {
  create("a", 3);
  create("b", 2);
  create("c", 1);
  TopicPageRequest request{.partitions_max = 4};
  std::vector<std::string> seen;
  int pages = 0;
  do {
    const auto one = page(request);
    ++pages;
    std::size_t partitions = 0;
    for (const auto& topic : one.topics) {
      partitions += topic.partitions.size();
      for (const auto& partition : topic.partitions) {
        seen.push_back(topic.topic.name + std::to_string(partition.partition));
      }
    }
    EXPECT_LE(partitions, 4u);
    request.from = one.next;
  } while (request.from && pages < 10);
  EXPECT_EQ(pages, 2);
  EXPECT_EQ(seen, (std::vector<std::string>{"a0", "a1", "a2", "b0", "b1", "c0"}));
}

TEST_F(AdminTest, APageOfNamedTopicsTellsWhichAreUnknown) {
  create("a", 1);
  const auto one = page({.topics = {{"none", "a", "bad name", "a"}}, .partitions_max = 1});
  ASSERT_EQ(one.topics.size(), 3u);
  EXPECT_EQ(one.topics[0].topic.name, "a");
  EXPECT_EQ(one.topics[1].error, ErrorCode::invalid_topic_exception);
  EXPECT_EQ(one.topics[2].error, ErrorCode::unknown_topic_or_partition);
  EXPECT_FALSE(one.next);
}

TEST_F(AdminTest, LogFoldersTellSizesOfWhatIsAskedFor) {
  create("a", 3);
  create("b", 1);
  produce_many("a", 2, 1);
  const auto describe = [this](std::optional<std::vector<TopicPartitions>> topics) {
    auto folders = on_shard(0, [&] { return admin().describe_log_folders(session(0), topics); });
    EXPECT_TRUE(folders) << to_string(folders.error());
    return folders->at(0);
  };
  const auto all = describe(std::nullopt);
  ASSERT_EQ(all.topics.size(), 2u);
  ASSERT_EQ(all.topics[0].partitions.size(), 3u);
  EXPECT_EQ(all.topics[0].partitions[1].bytes, 0u);
  EXPECT_GT(all.topics[0].partitions[2].bytes, 0u);
  const auto some = describe({{{"a", {1, 9}}, {"none", {0}}}});
  ASSERT_EQ(some.topics.size(), 1u);
  ASSERT_EQ(some.topics[0].partitions.size(), 1u);
  EXPECT_EQ(some.topics[0].partitions[0].partition, 1);
}

TEST_F(AdminTest, ProducersAreRememberedByPartition) {
  create("orders", 2);
  BatchBuilder builder({.producer_id = 77, .producer_epoch = 3, .base_sequence = 0});
  builder.add(Timestamp{1234}, std::nullopt, as_bytes("one"));
  builder.add(Timestamp{1235}, std::nullopt, as_bytes("two"));
  auto batch = std::move(builder).finish();
  ASSERT_TRUE(batch);
  auto request = produce_request("orders", {}, "");
  request.topics[0].partitions.push_back({1, *std::move(batch)});
  const auto produced = produce(0, std::move(request));
  ASSERT_TRUE(produced);
  ASSERT_EQ(produced->topics[0].partitions[0].error, ErrorCode::none);
  const std::vector<TopicPartitions> wanted{{"orders", {0, 1}}};
  auto described = on_shard(0, [&] { return admin().describe_producers(session(0), wanted); });
  ASSERT_TRUE(described);
  EXPECT_TRUE(described->at(0).partitions.at(0).producers.empty());
  ASSERT_EQ(described->at(0).partitions.at(1).producers.size(), 1u);
  const auto& producer = described->at(0).partitions[1].producers[0];
  EXPECT_EQ(producer.producer_id, 77);
  EXPECT_EQ(producer.producer_epoch, 3);
  EXPECT_EQ(producer.last_sequence, 1);
  EXPECT_EQ(producer.last_timestamp, Timestamp{1235});
  EXPECT_EQ(producer.coordinator_epoch, -1);
  EXPECT_EQ(producer.transaction_start, Offset{});
}

}  // namespace
}  // namespace millrace::kernel
