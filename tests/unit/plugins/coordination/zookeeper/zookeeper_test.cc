// One broker, or two, on a real server.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker_stand_in.h"
#include "cutting_proxy.h"

namespace millrace::zookeeper {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

TEST(ZooKeeperTest, SaysThatNothingIsThereAfterItHasWaited) {
  BrokerStandIn broker("127.0.0.1:1", "");
  broker.settings.start_timeout = milliseconds(200);
  broker.begin();
  const auto joined = broker.join();
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, Errc::timed_out);
  EXPECT_TRUE(joined.error().detail.contains("127.0.0.1:1")) << joined.error().detail;
}

TEST(ZooKeeperTest, IsClosedUntilItIsJoined) {
  BrokerStandIn broker("127.0.0.1:1", "");
  EXPECT_EQ(broker.put("/a", "x").error().code, Errc::closed);
  EXPECT_EQ(broker.get("/a").error().code, Errc::closed);
  EXPECT_EQ(broker.list("/a").error().code, Errc::closed);
  EXPECT_EQ(broker.next_change("/a", {}).error().code, Errc::closed);
}

TEST(ZooKeeperTest, MakesItsChrootAndKeepsEverythingBelowIt) {
  auto& server = shared_server();
  const auto chroot = fresh_chroot();
  BrokerStandIn below(server.address(), chroot + "/x/y");
  ASSERT_TRUE(below.join());
  ASSERT_TRUE(below.put("/key", "value"));
  BrokerStandIn above(server.address(), chroot, 2);
  ASSERT_TRUE(above.join());
  EXPECT_EQ(*above.get("/x/y/key"), "value");
}

TEST(ZooKeeperTest, LeavesFoldersOfTwoLevelsAndRemovesDeeperOnes) {
  BrokerStandIn broker(shared_server().address(), fresh_chroot());
  ASSERT_TRUE(broker.join());
  ASSERT_TRUE(broker.put("/brokers/topics/t/partitions/0/state", "{}"));
  EXPECT_THAT(*broker.list("/brokers/topics"), ElementsAre("t"));
  EXPECT_EQ(broker.get("/brokers/topics/t").error().code, Errc::not_found);
  ASSERT_TRUE(broker.commit({{.key = "/brokers/topics/t/partitions/0/state"}}));
  EXPECT_THAT(*broker.list("/brokers/topics"), ElementsAre());
  EXPECT_THAT(*broker.list("/brokers"), ElementsAre("topics"));
}

// A broker whose disk is full has to start to make room there.
TEST(ZooKeeperTest, JoinsWhereItsSessionCannotBeSaved) {
  BrokerStandIn broker(shared_server().address(), fresh_chroot());
  std::filesystem::create_directories(broker.folder.path() + "/coordination.session.tmp/taken");
  ASSERT_TRUE(broker.join());
  EXPECT_TRUE(broker.put("/key", "value"));
  EXPECT_TRUE(broker.log_text().contains("the session cannot be kept on disk"));
}

TEST(ZooKeeperTest, RefusesASecondBrokerOfTheSameId) {
  auto& server = shared_server();
  const auto chroot = fresh_chroot();
  BrokerStandIn first(server.address(), chroot);
  ASSERT_TRUE(first.join());
  BrokerStandIn second(server.address(), chroot);
  second.settings.session_timeout = milliseconds(1000);
  second.begin();
  // The first one's heartbeats go on meanwhile.
  auto joining = millrace::start(second.control(), second.zookeeper->join({.broker_id = 1}));
  ASSERT_TRUE(second.control().run_until(
      [&] {
        first.control().drain();
        return joining.is_ready();
      },
      seconds(30)));
  const auto joined = joining.await_resume();
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, Errc::conflict);
  EXPECT_TRUE(joined.error().detail.contains(first.folder.path())) << joined.error().detail;
  EXPECT_TRUE(first.put("/a", "still here"));
  second.begin();
  first.end();
  EXPECT_TRUE(second.join()) << "the id is free again";
}

TEST(ZooKeeperTest, RefusesTheFolderOfAnotherClusterAndAChrootThatHasNone) {
  auto& server = shared_server();
  const auto ours = fresh_chroot();
  const auto others = fresh_chroot();
  BrokerStandIn broker(server.address(), ours);
  ASSERT_TRUE(broker.join());
  broker.end();
  BrokerStandIn other(server.address(), others);
  ASSERT_TRUE(other.join());
  other.end();
  for (const auto& chroot : {others, fresh_chroot()}) {
    broker.settings.connect.chroot = chroot;
    broker.begin();
    const auto joined = broker.join();
    ASSERT_FALSE(joined);
    EXPECT_EQ(joined.error().code, Errc::conflict);
    EXPECT_TRUE(joined.error().detail.contains(broker.folder.path())) << joined.error().detail;
    EXPECT_TRUE(joined.error().detail.contains(chroot)) << joined.error().detail;
  }
  broker.settings.connect.chroot = ours;
  broker.begin();
  EXPECT_TRUE(broker.join());
}

TEST(ZooKeeperTest, RefusesACommitThatIsTooLargeForOnePacketAndTakesOneThatIsNot) {
  BrokerStandIn broker(shared_server().address(), fresh_chroot());
  ASSERT_TRUE(broker.join());
  const std::string value(900, 'x');
  std::vector<Write> fits;
  for (int at = 0; at < 900; ++at) {
    fits.push_back({.key = "/many/" + std::to_string(at), .value = value});
  }
  ASSERT_TRUE(broker.commit(fits));
  EXPECT_EQ(broker.list("/many")->size(), 900);
  auto large = fits;
  for (auto& write : large) write.key = "/more" + write.key;
  for (int at = 900; at < 1100; ++at) {
    large.push_back({.key = "/more/many/" + std::to_string(at), .value = value});
  }
  const auto refused = broker.commit(large);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::too_large);
  EXPECT_TRUE(refused.error().detail.contains("/more/many/0")) << refused.error().detail;
  EXPECT_TRUE(broker.list("/more")->empty());
  EXPECT_TRUE(broker.put("/a", "still connected"));
}

TEST(ZooKeeperTest, ListsMoreNamesThanAPacketHolds) {
  BrokerStandIn broker(shared_server().address(), fresh_chroot());
  ASSERT_TRUE(broker.join());
  const std::string tail(180, 'n');
  constexpr int names = 8000;
  for (int from = 0; from < names; from += 2000) {
    std::vector<Write> writes;
    for (int at = from; at < from + 2000; ++at) {
      writes.push_back({.key = "/l/" + std::to_string(10000 + at) + tail, .value = ""});
    }
    ASSERT_TRUE(broker.commit(std::move(writes)));
  }
  const auto listed = broker.list("/l");
  ASSERT_TRUE(listed) << to_string(listed.error());
  ASSERT_EQ(listed->size(), names);
  EXPECT_EQ(listed->front(), "10000" + tail);
  const auto watched = broker.next_change("/l", {});
  ASSERT_FALSE(watched);
  EXPECT_EQ(watched.error().code, Errc::too_large) << "so many watches cannot be set again at once";
}

TEST(ZooKeeperTest, KeepsOthersFromWhatItOwns) {
  auto& server = shared_server();
  const auto chroot = fresh_chroot();
  BrokerStandIn owner(server.address(), chroot);
  owner.settings.digest = "millrace:secret";
  owner.settings.access = Access::owner_writes;
  owner.begin();
  ASSERT_TRUE(owner.join());
  ASSERT_TRUE(owner.put("/a/key", "one"));

  BrokerStandIn other(server.address(), chroot, 2);
  const auto joined = other.join();
  ASSERT_FALSE(joined) << "may not register itself";
  EXPECT_TRUE(joined.error().detail.contains("/millrace/members")) << joined.error().detail;

  BrokerStandIn above(server.address(), "", 3);
  ASSERT_TRUE(above.join());
  EXPECT_EQ(*above.get(chroot + "/a/key"), "one");
  const auto written = above.put(chroot + "/a/key", "two");
  ASSERT_FALSE(written);
  EXPECT_TRUE(written.error().detail.contains(chroot + "/a/key")) << written.error().detail;

  BrokerStandIn same(server.address(), chroot, 4);
  same.settings.digest = "millrace:secret";
  same.settings.access = Access::owner_writes;
  same.begin();
  ASSERT_TRUE(same.join());
  EXPECT_TRUE(same.put("/a/key", "three"));
}

TEST(ZooKeeperTest, SeesEveryStateThatAnotherLeavesBehind) {
  auto& server = shared_server();
  const auto chroot = fresh_chroot();
  BrokerStandIn watcher(server.address(), chroot);
  BrokerStandIn writer(server.address(), chroot, 2);
  ASSERT_TRUE(watcher.join());
  ASSERT_TRUE(writer.join());
  std::mt19937 random(3);
  Seen seen;
  for (int round = 0; round < 60; ++round) {
    auto changed = watcher.next_change("/w", seen);
    ASSERT_TRUE(changed) << to_string(changed.error());
    seen = *changed;
    auto waiting = millrace::start(watcher.control(), watcher.zookeeper->next_change("/w", seen));
    watcher.control().drain();
    // Some bursts come while watches are armed anew, some before, some after.
    for (auto steps = random() % 4 + 1; steps > 0; --steps) {
      const auto key = "/w/" + std::to_string(random() % 3) + "/" + std::to_string(random() % 3);
      Write write{.key = key};
      if (random() % 3 != 0) write.value = std::to_string(random());
      const auto done = writer.commit({std::move(write)});
      ASSERT_TRUE(done || done.error().code == Errc::not_found) << to_string(done.error());
      watcher.control().drain();
    }
    const auto last = writer.put("/w/last", std::to_string(round));
    ASSERT_TRUE(last);
    changed = watcher.wait_for(std::move(waiting));
    ASSERT_TRUE(changed) << to_string(changed.error());
    while (*watcher.get("/w/last") != std::to_string(round)) {
      changed = watcher.next_change("/w", *changed);
      ASSERT_TRUE(changed) << to_string(changed.error());
    }
  }
}

TEST(ZooKeeperTest, ASessionThatExpiresWhileItIsCutOffIsLost) {
  auto& server = shared_server();
  const auto chroot = fresh_chroot();
  CuttingProxy proxy(server.port());
  BrokerStandIn broker(proxy.address(), chroot);
  BrokerStandIn other(server.address(), chroot, 2);
  ASSERT_TRUE(broker.join());
  ASSERT_TRUE(other.join());
  const auto epoch = broker.lease->epoch();
  ASSERT_TRUE(broker.commit({{.key = "/ids/1", .value = "here", .ephemeral = true}}));
  auto lost = millrace::start(broker.control(), broker.lease->lost());
  auto waiting = millrace::start(
      broker.control(), broker.zookeeper->next_change("/x", *broker.next_change("/x", {})));
  const auto seen = other.next_change("/ids", {});
  ASSERT_TRUE(seen);

  proxy.cut();
  auto in_doubt =
      millrace::start(broker.control(), broker.zookeeper->commit({{.key = "/a", .value = "x"}}));
  ASSERT_TRUE(other.next_change("/ids", *seen)) << "the others see that it is gone";
  EXPECT_EQ(other.get("/ids/1").error().code, Errc::not_found);
  broker.control().drain();
  EXPECT_LT(broker.lease->valid_until(), broker.control().now()) << "it stopped before that";
  EXPECT_FALSE(lost.is_ready()) << "nobody can tell it";
  EXPECT_FALSE(in_doubt.is_ready());
  proxy.heal();

  ASSERT_TRUE(broker.wait_for(std::move(lost))) << broker.log_text();
  EXPECT_EQ(broker.wait_for(std::move(waiting)).error().code, Errc::fenced);
  EXPECT_EQ(broker.wait_for(std::move(in_doubt)).error().code, Errc::fenced);
  const auto read = broker.get("/a");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::fenced);
  ASSERT_TRUE(broker.join());
  EXPECT_GT(broker.lease->epoch(), epoch);
  EXPECT_TRUE(broker.put("/a", "x"));
}

// Servers of their own, for what hurts them.
class ZooKeeperFaultTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.start());
    ASSERT_TRUE(server_.wait_until_serving());
    broker_.settings.session_timeout = seconds(10);
    broker_.begin();
    ASSERT_TRUE(broker_.join());
  }
  void restart_server() {
    server_.kill();
    ASSERT_TRUE(server_.start());
    const auto serving = server_.wait_until_serving();
    ASSERT_TRUE(serving) << to_string(serving.error());
  }

  ZooKeeperServer server_;
  BrokerStandIn broker_{server_.address(), "/millrace-test"};
};

TEST_F(ZooKeeperFaultTest, ALostConnectionCostsNeitherSessionNorWatchNorCommit) {
  ASSERT_TRUE(broker_.commit({{.key = "/here", .value = "1", .ephemeral = true}}));
  auto lost = millrace::start(broker_.control(), broker_.lease->lost());
  auto changed = millrace::start(
      broker_.control(), broker_.zookeeper->next_change("/w", *broker_.next_change("/w", {})));
  broker_.control().drain();
  server_.kill();
  auto asked = millrace::start(broker_.control(), broker_.zookeeper->get("/here"));
  std::vector<Write> writes{{.key = "/w/a", .value = "x", .expected = must_not_exist}};
  auto written = millrace::start(broker_.control(), broker_.zookeeper->commit(writes));
  ASSERT_TRUE(broker_.control().run_until(
      [&] { return broker_.log.contains("the connection to ZooKeeper is lost"); }, seconds(10)));
  EXPECT_FALSE(written.is_ready());
  ASSERT_TRUE(server_.start());
  const auto done = broker_.wait_for(std::move(written));
  ASSERT_TRUE(done) << to_string(done.error());
  EXPECT_EQ(broker_.wait_for(std::move(asked))->value, "1");
  EXPECT_TRUE(broker_.wait_for(std::move(changed)));
  EXPECT_FALSE(lost.is_ready());
}

TEST_F(ZooKeeperFaultTest, DoesEachCommitOnceWhateverHappensToTheConnection) {
  constexpr int commits = 300;
  for (int at = 0; at < commits; ++at) {
    std::vector<Write> writes{{.key = "/count",
                               .value = std::to_string(at),
                               .expected = at == 0 ? must_not_exist : at - 1}};
    auto pending = millrace::start(broker_.control(), broker_.zookeeper->commit(writes));
    if (at % 100 == 50) {
      server_.kill();
      ASSERT_TRUE(server_.start());
    }
    const auto done = broker_.wait_for(std::move(pending));
    ASSERT_TRUE(done) << at << ": " << to_string(done.error());
    ASSERT_EQ(done->front(), at);
  }
}

TEST_F(ZooKeeperFaultTest, TheLeaseRunsDownWhileTheServerIsSilentAndTheSessionDoesNot) {
  server_.pause();
  const auto until = broker_.lease->valid_until();
  EXPECT_GT(until, broker_.control().now());
  auto lost = millrace::start(broker_.control(), broker_.lease->lost());
  ASSERT_TRUE(broker_.control().run_until(
      [&] { return broker_.control().now() > broker_.lease->valid_until(); }, seconds(10)));
  // An answer that was on its way may have come in.
  EXPECT_LE(broker_.lease->valid_until() - until, seconds(2));
  EXPECT_FALSE(lost.is_ready());
  server_.go_on();
  ASSERT_TRUE(broker_.control().run_until(
      [&] { return broker_.lease->valid_until() > broker_.control().now(); }, seconds(20)));
  EXPECT_FALSE(lost.is_ready());
}

TEST(ZooKeeperEnsembleTest, GoesOnWhenTheServerItSpeaksToDies) {
  const std::vector<ZooKeeperServer::Member> members{
      ZooKeeperServer::free_ports(), ZooKeeperServer::free_ports(), ZooKeeperServer::free_ports()};
  std::vector<std::unique_ptr<ZooKeeperServer>> servers;
  std::string addresses;
  for (std::size_t at = 0; at < members.size(); ++at) {
    servers.push_back(std::make_unique<ZooKeeperServer>(at, members));
    ASSERT_TRUE(servers.back()->start());
    addresses += (at == 0 ? "" : ",") + servers.back()->address();
  }
  for (const auto& server : servers) ASSERT_TRUE(server->wait_until_serving());
  BrokerStandIn broker(addresses, "/a/b");
  broker.settings.session_timeout = seconds(10);
  broker.begin();
  ASSERT_TRUE(broker.join());
  auto lost = millrace::start(broker.control(), broker.lease->lost());
  int written = 0;
  for (auto& server : servers) {
    for (int at = 0; at < 20; ++at, ++written) {
      ASSERT_TRUE(
          broker.put("/n", std::to_string(written), written == 0 ? must_not_exist : written - 1));
    }
    server->kill();
    ASSERT_TRUE(broker.put("/n", std::to_string(written), written - 1));
    ++written;
    ASSERT_TRUE(server->start());
    ASSERT_TRUE(server->wait_until_serving());
  }
  EXPECT_FALSE(lost.is_ready());
  EXPECT_EQ(*broker.get("/n"), std::to_string(written - 1));
}

}  // namespace
}  // namespace millrace::zookeeper
