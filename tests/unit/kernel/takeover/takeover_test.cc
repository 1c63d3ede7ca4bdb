#include "kernel/takeover/takeover.h"

#include <gmock/gmock.h>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>

#include "golden_metadata.h"
#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"

namespace millrace::kernel {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view zookeeper_properties = "version=0\nbroker.id=1\ncluster.id=zk-cluster\n";

class TakeoverTest : public ::testing::Test {
 protected:
  TakeoverTest() {
    load(coordination_, "coordination/standalone");
    load(storage_, "storage/filelog");
    lease_ = *world_.run(node_.control(), [&] { return coordination().join(Member{1}); });
  }

  Coordination& coordination() { return *coordination_->registered().coordination; }
  Storage& storage() { return *storage_->registered().storage; }
  Takeover takeover(std::int32_t broker = 1) {
    return {node_, coordination(), storage(), Log(log_, "takeover"), "/data", broker};
  }
  Result<> take_over_as(std::int32_t broker) {
    return world_.run(node_.control(), [&] { return take_over_task(takeover(broker)); });
  }
  ::testing::AssertionResult taken_over() {
    const auto taken = take_over_as(1);
    if (taken) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << to_string(taken.error());
  }
  std::map<std::string, TopicState> topics() {
    auto read = world_.run(node_.control(), [&] { return read_topics(coordination()); });
    std::map<std::string, TopicState> by_name;
    if (!read) throw std::runtime_error(to_string(read.error()));
    for (auto& topic : *read) by_name.emplace(topic.name, std::move(topic));
    return by_name;
  }
  std::string value_of(std::string key) {
    auto node = world_.run(node_.control(), [&] { return coordination().get(key); });
    return node ? node->value : "none";
  }
  void put(const std::string& path, std::string_view content) {
    ASSERT_TRUE(node_.files().make_folders(path.substr(0, path.rfind('/'))));
    put_file(node_.files(), path, content);
  }

  testing::SimWorld world_{1};
  testing::SimEnvironment& node_ = world_.add_node("b1");
  testing::KeptLog log_;
  std::optional<testing::LoadedPlugin> coordination_;
  std::optional<testing::LoadedPlugin> storage_;
  std::unique_ptr<Lease> lease_;

 private:
  void load(std::optional<testing::LoadedPlugin>& into, const std::string& name) {
    auto loaded = testing::load_plugin(MILLRACE_PLUGIN_DIR "/" + name + ".so", node_, {},
                                       {{"broker.data", "/data"}});
    if (!loaded) throw std::runtime_error(to_string(loaded.error()));
    into.emplace(*std::move(loaded));
  }
  static Task<> take_over_task(Takeover takeover) {
    co_return co_await take_over(std::move(takeover));
  }
};

TEST_F(TakeoverTest, ADirectoryThatNobodyUsedIsLeftAlone) {
  put("/data/orders-0/00000000000000000000.log", "");
  ASSERT_TRUE(taken_over());
  EXPECT_TRUE(topics().empty());
}

TEST_F(TakeoverTest, ADirectoryOfAnotherBrokerIsRefusedAndNothingChanged) {
  put_golden_metadata(node_.files(), "/data");
  const auto refused = take_over_as(2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::conflict);
  EXPECT_THAT(refused.error().detail, HasSubstr("set broker.id to 1"));
  EXPECT_TRUE(topics().empty());
}

TEST_F(TakeoverTest, TopicsComeFromTheMetadataLogAndAreLedHere) {
  put_golden_metadata(node_.files(), "/data");
  ASSERT_TRUE(taken_over());
  const auto found = topics();
  ASSERT_GT(found.size(), 100u);
  for (const auto& [name, topic] : found) {
    for (const auto& partition : topic.partitions) EXPECT_EQ(partition.leader, 1) << name;
  }
  EXPECT_THAT(value_of("/latest_producer_id_block"), HasSubstr("1099511627775"));
}

TEST_F(TakeoverTest, WhatWeChangedStaysUntilKafkaRanAgain) {
  put_golden_metadata(node_.files(), "/data");
  ASSERT_TRUE(taken_over());
  const auto first = topics().begin()->second;
  ASSERT_TRUE(world_.run(node_.control(), [&] { return erase_topic(coordination(), first); }));
  ASSERT_TRUE(taken_over());
  EXPECT_FALSE(topics().contains(first.name));

  // As if the log had been shorter then.
  std::vector<Write> forget;
  forget.push_back({.key = "/millrace/takeover", .value = R"({"metadata_end":1,"topics":[]})"});
  ASSERT_TRUE(world_.run(node_.control(), [&] { return coordination().commit(forget); }));
  ASSERT_TRUE(taken_over());
  EXPECT_TRUE(topics().contains(first.name));
}

TEST_F(TakeoverTest, ATopicThatKafkaDeletedMeanwhileGoesAndOneOfOursStays) {
  TopicState deleted{
      .name = "deleted", .id = node_.random().uuid(), .configs = {}, .partitions = {}};
  deleted.partitions.push_back({.leader = 1, .replicas = {1}, .in_sync = {1}});
  TopicState ours = deleted;
  ours.name = "ours";
  ours.id = node_.random().uuid();
  for (const auto& topic : {deleted, ours}) {
    ASSERT_TRUE(world_.run(node_.control(), [&] { return write_topic(coordination(), topic, 0); }));
  }
  std::vector<Write> progress;
  progress.push_back(
      {.key = "/millrace/takeover",
       .value = R"({"metadata_end":1,"topics":[")" + to_string(deleted.id) + "\"]}"});
  ASSERT_TRUE(world_.run(node_.control(), [&] { return coordination().commit(progress); }));
  put_golden_metadata(node_.files(), "/data");
  ASSERT_TRUE(taken_over());
  EXPECT_FALSE(topics().contains("deleted"));
  EXPECT_TRUE(topics().contains("ours"));
}

TEST_F(TakeoverTest, WithZooKeeperTopicsComeFromTheirFolders) {
  put("/data/meta.properties", zookeeper_properties);
  const auto id = node_.random().uuid();
  put("/data/orders-0/partition.metadata", "version: 0\ntopic_id: " + to_string(id));
  put("/data/orders-0/leader-epoch-checkpoint", "0\n2\n0 0\n4 12\n");
  put("/data/orders-1/00000000000000000000.log", "");
  put("/data/__consumer_offsets-0/00000000000000000000.log", "");
  put("/data/cleaner-offset-checkpoint", "0\n0\n");
  ASSERT_TRUE(taken_over());
  const auto found = topics();
  ASSERT_EQ(found.size(), 2u);
  const auto& orders = found.at("orders");
  EXPECT_EQ(orders.id, id);
  ASSERT_EQ(orders.partitions.size(), 2u);
  EXPECT_EQ(orders.partitions[0].leader_epoch, Epoch{4});
  EXPECT_EQ(orders.partitions[1].leader_epoch, Epoch{0});
  EXPECT_EQ(orders.configs.at("retention.ms"), "-1");
  EXPECT_EQ(found.at("__consumer_offsets").configs.at("cleanup.policy"), "compact");
  EXPECT_TRUE(log_.contains("retention is off"));
}

TEST_F(TakeoverTest, FoldersAreBelievedOnlyByACoordinationThatIsNew) {
  put("/data/meta.properties", zookeeper_properties);
  std::vector<Write> joined;
  joined.push_back({.key = "/cluster/id", .value = znodes::encode_cluster_id("zk-cluster")});
  ASSERT_TRUE(world_.run(node_.control(), [&] { return coordination().commit(joined); }));
  put("/data/orders-0/00000000000000000000.log", "");
  ASSERT_TRUE(taken_over());
  EXPECT_TRUE(topics().empty());
}

TEST_F(TakeoverTest, TheDirectoryOfAClustersBrokerIsNotBelieved) {
  put("/data/meta.properties", "version=1\nnode.id=1\ncluster.id=abc\n");
  ASSERT_TRUE(taken_over()) << "there is nothing in it";
  put("/data/orders-1/00000000000000000000.log", "");
  const auto refused = take_over_as(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::conflict);
  EXPECT_THAT(refused.error().detail, HasSubstr("/data is a directory of cluster abc"));
  EXPECT_TRUE(topics().empty());
}

// It has some partitions of a topic, and its cluster knows them all.
TEST_F(TakeoverTest, ABrokerThatIsBackInItsClusterTakesNothingOver) {
  put("/data/meta.properties", "version=1\nnode.id=1\ncluster.id=abc\n");
  put("/data/orders-1/00000000000000000000.log", "");
  std::vector<Write> joined;
  joined.push_back({.key = "/cluster/id", .value = znodes::encode_cluster_id("abc")});
  ASSERT_TRUE(world_.run(node_.control(), [&] { return coordination().commit(joined); }));
  ASSERT_TRUE(taken_over());
  EXPECT_TRUE(topics().empty());
}

TEST_F(TakeoverTest, AMetadataLogWithoutAnOwnerIsRefused) {
  put_golden_metadata(node_.files(), "/data");
  ASSERT_TRUE(node_.files().remove("/data/meta.properties"));
  const auto refused = take_over_as(1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("no meta.properties"));
}

TEST_F(TakeoverTest, TwoTopicsWithOneIdAreRefused) {
  put("/data/meta.properties", zookeeper_properties);
  const auto id = "version: 0\ntopic_id: " + to_string(node_.random().uuid());
  put("/data/orders-0/partition.metadata", id);
  put("/data/orders-01/partition.metadata", id);  // no partition's name
  ASSERT_TRUE(taken_over());
  put("/data/returns-0/partition.metadata", id);
  const auto refused = take_over_as(1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("'orders' and 'returns' both have the id"));
}

TEST_F(TakeoverTest, FoldersThatDoNotCountFromZeroAreRefused) {
  put("/data/meta.properties", zookeeper_properties);
  put("/data/orders-1/00000000000000000000.log", "");
  const auto refused = take_over_as(1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("partition 1 but not 0"));
}

}  // namespace
}  // namespace millrace::kernel
