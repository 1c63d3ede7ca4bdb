// The link between two brokers: what one asks over it arrives at the other's services, and the
// answers come back.
#include "plugins/transport/kafka/peer_link.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/kafka/api_versions.h>
#include <millrace/kafka/client.h>

#include "link_fixture.h"

namespace millrace::kafka_transport::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::SizeIs;
using namespace std::chrono_literals;

class PeerLinkTest : public LinkFixture<KafkaPeerLink, Peer> {
 protected:
  /// A fetch of two partitions of one topic.
  FetchRequest follower_fetch() const {
    FetchRequest fetch;
    fetch.replica_id = 4;
    fetch.replica_epoch = 70'000'000'000;
    fetch.wait_max = 500ms;
    fetch.bytes_min = 1;
    fetch.bytes_max = 10 << 20;
    fetch.session_id = 12;
    fetch.session_epoch = 6;
    fetch.by_topic_id = true;
    auto& topic = fetch.topics.emplace_back(TopicName{"orders", id_});
    for (const std::int32_t partition : {0, 5}) {
      topic.partitions.push_back({.partition = partition,
                                  .current_leader_epoch = {8},
                                  .from = {100},
                                  .last_fetched_epoch = {7},
                                  .log_start = {20},
                                  .high_watermark = {90},
                                  .bytes_max = 1 << 20});
    }
    fetch.forgotten.push_back({{"", Uuid{{9}}}, {1}});
    return fetch;
  }
};

TEST_F(PeerLinkTest, AFollowersFetchArrivesWhole) {
  FetchRequest got;
  broker_.on_fetch = [&](const FetchRequest& request) {
    got = request;
    return plain_answer(request);
  };
  const auto answer = on_a([this] { return peer_->fetch(follower_fetch()); });
  ASSERT_TRUE(answer) << to_string(answer.error());
  EXPECT_EQ(got.replica_id, 4);
  EXPECT_EQ(got.replica_epoch, 70'000'000'000);
  EXPECT_EQ(got.wait_max, 500ms);
  EXPECT_EQ(got.bytes_min, 1);
  EXPECT_EQ(got.bytes_max, 10 << 20);
  EXPECT_EQ(got.session_id, 12);
  EXPECT_EQ(got.session_epoch, 6);
  EXPECT_TRUE(got.by_topic_id);
  EXPECT_EQ(got.newest_magic, 2);
  ASSERT_THAT(got.topics, SizeIs(1));
  EXPECT_EQ(got.topics[0].topic.id, id_);
  ASSERT_THAT(got.topics[0].partitions, SizeIs(2));
  const auto& partition = got.topics[0].partitions[1];
  EXPECT_EQ(partition.partition, 5);
  EXPECT_EQ(partition.current_leader_epoch, Epoch{8});
  EXPECT_EQ(partition.from, Offset{100});
  EXPECT_EQ(partition.last_fetched_epoch, Epoch{7});
  EXPECT_EQ(partition.log_start, Offset{20});
  EXPECT_EQ(partition.high_watermark, Offset{90});
  EXPECT_EQ(partition.bytes_max, 1 << 20);
  ASSERT_THAT(got.forgotten, SizeIs(1));
  EXPECT_EQ(got.forgotten[0].topic.id, Uuid{{9}});
  EXPECT_THAT(got.forgotten[0].partitions, ElementsAre(1));
}

TEST_F(PeerLinkTest, RecordsArriveAsSlicesOfTheAnswer) {
  const std::string records(3000, 'r');
  broker_.on_fetch = [&](const FetchRequest& request) {
    auto answer = plain_answer(request);
    answer.session_id = 12;
    for (auto& partition : answer.topics.at(0).partitions) {
      partition.high_watermark = {77};
      partition.last_stable = {76};
      partition.log_start = {3};
      partition.records = Payload(Buffer::copy_of(records));
    }
    return answer;
  };
  const auto answer = on_a([this] { return peer_->fetch(follower_fetch()); });
  ASSERT_TRUE(answer) << to_string(answer.error());
  EXPECT_EQ(answer->session_id, 12);
  ASSERT_THAT(answer->topics, SizeIs(1));
  EXPECT_EQ(answer->topics[0].topic.id, id_);
  const auto& partitions = answer->topics[0].partitions;
  ASSERT_THAT(partitions, SizeIs(2));
  EXPECT_EQ(partitions[1].partition, 5);
  EXPECT_EQ(partitions[1].high_watermark, Offset{77});
  EXPECT_EQ(partitions[1].last_stable, Offset{76});
  EXPECT_EQ(partitions[1].log_start, Offset{3});
  EXPECT_EQ(partitions[1].diverging_end, Offset{});
  ASSERT_THAT(partitions[0].records.parts(), SizeIs(1));
  ASSERT_THAT(partitions[1].records.parts(), SizeIs(1));
  const auto& first = std::get<Buffer>(partitions[0].records.parts()[0]);
  const auto& second = std::get<Buffer>(partitions[1].records.parts()[0]);
  EXPECT_EQ(first.text(), records);
  // One lies a little behind the other, as in the frame: nothing was copied out of it.
  EXPECT_GT(second.data(), first.data() + first.size());
  EXPECT_LT(second.data(), first.data() + first.size() + 200);
}

TEST_F(PeerLinkTest, ADivergingFollowerIsTold) {
  broker_.on_fetch = [&](const FetchRequest& request) {
    auto answer = plain_answer(request);
    answer.topics.at(0).partitions.at(0).diverging_epoch = {6};
    answer.topics.at(0).partitions.at(0).diverging_end = {95};
    answer.topics.at(0).partitions.at(1).error = ErrorCode::fenced_leader_epoch;
    return answer;
  };
  const auto answer = on_a([this] { return peer_->fetch(follower_fetch()); });
  ASSERT_TRUE(answer) << to_string(answer.error());
  const auto& partitions = answer->topics.at(0).partitions;
  EXPECT_EQ(partitions.at(0).diverging_epoch, Epoch{6});
  EXPECT_EQ(partitions.at(0).diverging_end, Offset{95});
  EXPECT_EQ(partitions.at(1).error, ErrorCode::fenced_leader_epoch);
}

TEST_F(PeerLinkTest, AFetchWithoutTopicIdIsNotSent) {
  auto nameless = follower_fetch();
  nameless.topics[0].topic.id = {};
  const auto answer = on_a([&] { return peer_->fetch(nameless); });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::unsupported);
}

TEST_F(PeerLinkTest, EpochEndsAreFound) {
  std::vector<TopicEpochQuery> queries{{"orders", {}}};
  queries[0].partitions.push_back({.partition = 5, .current_leader_epoch = {8}, .epoch = {6}});
  const auto ends = on_a([&] { return peer_->epoch_ends(4, queries); });
  ASSERT_TRUE(ends) << to_string(ends.error());
  const auto& asked = broker_.epoch_ends_asked.at(0).at(0).partitions.at(0);
  EXPECT_EQ(asked.current_leader_epoch, Epoch{8});
  EXPECT_EQ(asked.epoch, Epoch{6});
  EXPECT_EQ(ends->at(0).topic, "orders");
  EXPECT_EQ(ends->at(0).partitions.at(0).partition, 5);
  EXPECT_EQ(ends->at(0).partitions.at(0).end, Offset{9});
}

TEST_F(PeerLinkTest, UpdatesArriveInTheOrderOfTheCalls) {
  const auto updated = on_a([this]() -> Task<ClusterUpdated> {
    ClusterUpdate first;
    first.controller_epoch = 1;
    ClusterUpdate second;
    second.controller_epoch = 2;
    Shard& here = co_await this_shard();
    auto earlier = millrace::start(here, peer_->update(std::move(first)));
    auto later = millrace::start(here, peer_->update(std::move(second)));
    MR_CO_CHECK(co_await earlier);
    co_return co_await later;
  });
  ASSERT_TRUE(updated) << to_string(updated.error());
  EXPECT_EQ(updated->error, ErrorCode::stale_broker_epoch);
  ASSERT_THAT(cluster_.updates, SizeIs(2));
  EXPECT_EQ(cluster_.updates[0].controller_epoch, 1);
  EXPECT_EQ(cluster_.updates[1].controller_epoch, 2);
}

TEST_F(PeerLinkTest, AnInSyncChangeIsAskedByIdAndArrivesWithTheNameThatIsKnown) {
  broker_.metadata_answer.topics.push_back({.topic = {"orders", id_}, .partitions = {}});
  std::vector<InSyncChange> changes(2);
  changes[0] = {.partition = {"orders", 5},
                .topic_id = id_,
                .leader_epoch = {8},
                .partition_epoch = 20,
                .in_sync = {4, 1},
                .in_sync_epochs = {}};
  changes[1] = changes[0];
  changes[1].partition = {"unknown", 0};
  changes[1].topic_id = Uuid{{9}};
  const auto changed = on_a([&] { return peer_->change_in_sync(4, 77, changes); });
  ASSERT_TRUE(changed) << to_string(changed.error());
  EXPECT_EQ(cluster_.asker, (std::pair<std::int32_t, std::int64_t>{4, 77}));
  ASSERT_THAT(cluster_.changes, SizeIs(2));
  EXPECT_EQ(cluster_.changes[0].partition, (TopicPartition{"orders", 5}));
  EXPECT_EQ(cluster_.changes[0].topic_id, id_);
  EXPECT_EQ(cluster_.changes[1].partition, (TopicPartition{"", 0}));
  ASSERT_THAT(*changed, SizeIs(2));
  EXPECT_EQ(changed->at(0).partition, (TopicPartition{"orders", 5}));
  EXPECT_EQ(changed->at(0).state.partition_epoch, 21);
  EXPECT_THAT(changed->at(0).state.in_sync, ElementsAre(4, 1));
  EXPECT_EQ(changed->at(1).partition, (TopicPartition{"unknown", 0}));
  EXPECT_EQ(changed->at(1).error, ErrorCode::none);
}

TEST_F(PeerLinkTest, ABrokerThatGoesDownIsToldWhatItStillLeads) {
  const auto moved = on_a([this] { return peer_->shut_down(4, 77); });
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_EQ(cluster_.asker, (std::pair<std::int32_t, std::int64_t>{4, 77}));
  EXPECT_THAT(moved->remaining, ElementsAre(TopicPartition{"orders", 3}));
}

TEST_F(PeerLinkTest, TopicsAreCreatedAndDeleted) {
  std::vector<NewTopic> topics(1);
  topics[0].name = "orders";
  topics[0].partitions = 2;
  topics[0].replication_factor = -1;
  topics[0].assignments = {{0, {1, 2}}};
  topics[0].configs = {{"retention.ms", "1000"}};
  const auto created = on_a([&] { return peer_->create_topics(topics); });
  ASSERT_TRUE(created) << to_string(created.error());
  const auto& asked = broker_.admin().create_topics_asked.at(0).topics.at(0);
  EXPECT_EQ(asked.partitions, 2);
  EXPECT_THAT(asked.assignments.at(0), ElementsAre(1, 2));
  EXPECT_EQ(asked.configs.at(0).second, "1000");
  EXPECT_EQ(created->at(0).name, "orders");
  EXPECT_EQ(created->at(0).replication_factor, 1);

  const auto deleted =
      on_a([&] { return peer_->delete_topics({{"orders", id_}, {"nameless", {}}}); });
  ASSERT_TRUE(deleted) << to_string(deleted.error());
  const auto& gone = broker_.admin().delete_topics_asked.at(0);
  EXPECT_EQ(gone.at(0).id, id_);
  EXPECT_EQ(gone.at(1).name, "nameless");
}

TEST_F(PeerLinkTest, AConnectionThatEndsFailsItsCallsAndAnotherOneWorks) {
  broker_.hold_fetch = true;
  const auto answer = on_a([this]() -> Task<FetchAnswer> {
    Shard& here = co_await this_shard();
    auto asking = millrace::start(here, peer_->fetch(follower_fetch()));
    world_.cut(a_, b_);
    co_return co_await asking;
  });
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().code, Errc::timed_out);
  broker_.hold_fetch = false;
  peer_ = connect();
  const auto again = on_a([this] { return peer_->fetch(follower_fetch()); });
  EXPECT_TRUE(again) << to_string(again.error());
}

TEST_F(PeerLinkTest, AFetchThatIsGivenUpDoesNotHoldTheNextOneUp) {
  broker_.hold_fetch = true;
  CancelScope waits;
  Pending<FetchAnswer> given_up;
  const auto begun = on_a([&]() -> Task<> {
    Shard& here = co_await this_shard();
    given_up = millrace::start(here, peer_->fetch(follower_fetch()), &waits);
    co_return {};
  });
  ASSERT_TRUE(begun);
  ASSERT_TRUE(world_.run_until([this] { return !broker_.fetches.empty(); }, 1s));
  const auto parked = world_.run(*b_.shards().front(), [this]() -> Task<> {
    broker_.hold_fetch = false;
    broker_.fetches.front().dispatched.resolve();
    co_return {};
  });
  ASSERT_TRUE(parked);
  const auto answer = on_a([&]() -> Task<FetchAnswer> {
    waits.cancel();
    const auto ended = co_await given_up;
    EXPECT_EQ(ended.error().code, Errc::cancelled);
    co_return co_await peer_->fetch(follower_fetch());
  });
  ASSERT_TRUE(answer) << to_string(answer.error());
  EXPECT_THAT(answer->topics, SizeIs(1));
}

TEST_F(PeerLinkTest, OthersAreNotToldOfWhatBrokersSayToEachOther) {
  const auto listed = [&](std::string software) {
    auto answer = on_a([&]() -> Task<std::vector<std::int16_t>> {
      kafka::ClientOptions options;
      options.software = software;
      auto connecting = kafka::Client::connect(a_.network(), {b_.host(), 9092}, options);
      MR_CO_TRY(auto client, co_await std::move(connecting));
      kafka::ApiVersionsRequest request;
      request.client_software_name = software;
      request.client_software_version = "1";
      auto asking = client->call(std::move(request));
      MR_CO_TRY(const auto versions, co_await std::move(asking));
      std::vector<std::int16_t> keys;
      for (const auto& api : versions.api_keys) keys.push_back(api.api_key);
      co_return keys;
    });
    EXPECT_TRUE(answer) << to_string(answer.error());
    return answer ? *std::move(answer) : std::vector<std::int16_t>();
  };
  const auto update = static_cast<std::int16_t>(kafka::ApiKey::cluster_update);
  const auto alter = static_cast<std::int16_t>(kafka::ApiKey::alter_partition);
  EXPECT_THAT(listed("millrace"), Not(Contains(update)));
  EXPECT_THAT(listed("millrace"), Contains(alter));
  EXPECT_THAT(listed(std::string(peer_software)), Contains(update));
}

TEST(ClusterApisTest, AreNotServedWithoutAService) {
  FakeBroker alone;
  const ApiSet apis(alone);
  for (const auto key : {kafka::ApiKey::cluster_update, kafka::ApiKey::alter_partition,
                         kafka::ApiKey::controlled_shutdown}) {
    const auto newest = kafka::info_of(key).served.max;
    EXPECT_FALSE(apis.find(static_cast<std::int16_t>(key), newest));
  }
}

}  // namespace
}  // namespace millrace::kafka_transport::testing
