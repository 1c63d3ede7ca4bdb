// Topics that are made while a broker is in trouble: its disk is full, or it does not answer.
#include <chrono>

#include <millrace/kafka/create_topics.h>

#include "kernel/broker/broker.h"
#include "two_brokers.h"

namespace millrace::testing {
namespace {

using std::chrono::seconds;

class SimNewTopicsTest : public TwoBrokers {
 protected:
  SimNewTopicsTest() : TwoBrokers({}) {
    for (const std::size_t at : {0, 1}) start(at);
  }
  // As the first broker knows it.
  const kernel::PartitionState& known() {
    const auto& cluster = brokers_[0]->broker().partitions().shards()[0]->cluster();
    return cluster->find(std::string_view(orders.topic))->partitions[0];
  }
};

TEST_F(SimNewTopicsTest, AReplicaThatCouldNotBeMadeIsMadeOnceThereIsRoom) {
  nodes_[1]->files().limit_bytes(1);
  create();
  EXPECT_EQ(leader(0), 0U);
  produce(0, 5);
  world_.run_for(seconds(100));
  EXPECT_EQ(known().in_sync.size(), 1U);
  EXPECT_TRUE(brokers_[1]->log().contains(
      "a partition cannot be opened and stays offline; it is tried again"));

  nodes_[1]->files().limit_bytes({});
  EXPECT_TRUE(world_.run_until([this] { return known().in_sync.size() == 2; }, seconds(32)));
  EXPECT_TRUE(brokers_[1]->log().contains("a partition that could not be opened is open now"));
  EXPECT_TRUE(brokers_[0]->log().contains("a replica that was offline is there"));
  // It has all of it.
  ASSERT_TRUE(brokers_[0]->stop());
  EXPECT_EQ(leader(1), 1U);
  produce(1, 1);
}

// Whom nobody else can stand in for: it leads once it is there.
TEST_F(SimNewTopicsTest, AnOnlyReplicaThatCouldNotBeOpenedLeadsOnceItIs) {
  ASSERT_TRUE(brokers_[1]->stop());
  create(1);
  produce(0, 5);
  ASSERT_TRUE(brokers_[0]->stop());
  auto& files = nodes_[0]->files();
  const std::string metadata = "/data/orders-0/partition.metadata";
  const auto sound = read_file(files, metadata);
  ASSERT_TRUE(sound) << to_string(sound.error());
  ASSERT_TRUE(replace_file(files, metadata, as_bytes("garbage")));
  start(0);
  world_.run_for(seconds(100));
  EXPECT_EQ(leader(0), 2U);
  ASSERT_TRUE(replace_file(files, metadata, *sound));
  EXPECT_TRUE(world_.run_until([this] { return known().leader == 1; }, seconds(32)));
  produce(0, 1);
}

// The topics of one request are made a hundred at a time, with the brokers that lived when it came,
// as Kafka does it: what is asked of all does not depend on when a session ends.
TEST_F(SimNewTopicsTest, ABrokerThatFallsSilentInTheMidstOfARequestChangesNothingOfIt) {
  constexpr std::size_t count = 250;
  auto body = [this]() -> Task<std::vector<std::int16_t>> {
    MR_CO_TRY(auto client, co_await connect_to(client_.network(), "b1"));
    kafka::CreateTopicsRequest request;
    request.timeout_ms = 120'000;
    std::vector<std::string> names;
    for (std::size_t at = 0; at < count; ++at) names.push_back("topic-" + std::to_string(at));
    for (const auto& name : names) {
      auto& wanted = request.topics.emplace_back();
      wanted.name = name;
      wanted.num_partitions = 1;
      wanted.replication_factor = 2;
    }
    MR_CO_TRY(const auto answer, co_await client->call(std::move(request)));
    std::vector<std::int16_t> errors;
    for (const auto& topic : answer.topics) errors.push_back(topic.error_code);
    co_return std::move(errors);
  };
  nodes_[1]->pause(seconds(60));
  const auto errors = world_.run(*client_.shards()[0], body, std::chrono::minutes(2));
  ASSERT_TRUE(errors) << to_string(errors.error());
  EXPECT_THAT(*errors, ::testing::SizeIs(count));
  EXPECT_THAT(*errors, ::testing::Each(0));
  const auto& shard = brokers_[0]->broker().partitions().shards()[0];
  const auto all = [&](std::size_t in_sync) {
    const auto cluster = shard->cluster();
    return std::ranges::all_of(cluster->topics, [&](const auto& entry) {
      const auto& partition = entry.second->partitions[0];
      return partition.replicas.size() == 2 && partition.in_sync.size() == in_sync &&
             (in_sync == 2 || partition.leader == 1);
    });
  };
  EXPECT_TRUE(all(1)) << "nobody waits for who is gone";
  EXPECT_TRUE(world_.run_until([&] { return all(2); }, std::chrono::minutes(2)));
}

}  // namespace
}  // namespace millrace::testing
