// flush.messages=1 with many producers: how often the disk is asked.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>

#include "kernel/partition/partition.h"
#include "tests/unit/sdk/batch/loaded_codecs.h"

namespace millrace::kernel {
namespace {

using millrace::testing::loaded_codecs;

constexpr int producers = 16;
constexpr int requests_of_each = 8;

class GroupCommitTest : public ::testing::Test {
 protected:
  template <class F>
  auto run(F make) {
    return world_.run(shard(), std::move(make));
  }

  void SetUp() override {
    const auto path = std::string(MILLRACE_PLUGIN_DIR) + "/storage/filelog.so";
    auto loaded = testing::load_plugin(path, node_, {}, {{"broker.data", "/data"}});
    ASSERT_TRUE(loaded) << to_string(loaded.error());
    plugin_.emplace(*std::move(loaded));
    ASSERT_TRUE(run([this] { return storage().lock(); }));
    const auto config = TopicConfig::parse({}, {{"flush.messages", "1"}});
    ASSERT_TRUE(config) << config.error().detail;
    auto opened = run([this, config = *config] {
      PartitionHost host{node_,   shard(), storage(), loaded_codecs(), plugin_->host().log(),
                         opening_};
      return Partition::open(host, {"orders", 0}, Uuid{.bytes = {1}}, config, Epoch{0});
    });
    ASSERT_TRUE(opened) << to_string(opened.error());
    partition_ = *std::move(opened);
  }
  void TearDown() override {
    if (!partition_) return;
    EXPECT_TRUE(run([this] { return partition_->close(); }));
    EXPECT_TRUE(run([this] { return storage().close(); }));
  }

  Shard& shard() { return *node_.shards().front(); }
  Storage& storage() { return *plugin_->registered().storage; }
  std::size_t syncs() const {
    const auto& lines = world_.trace().lines();
    return static_cast<std::size_t>(std::ranges::count_if(lines, [](const std::string& line) {
      return line.contains("sync /data/orders-0/00000000000000000000.log");
    }));
  }
  // One after the other, each when the one before is acknowledged.
  static Task<> send(Partition* partition, int requests) {
    for (int at = 0; at < requests; ++at) {
      BatchBuilder builder({});
      builder.add({1000}, as_bytes("key"), as_bytes("value"));
      MR_CO_TRY(auto batch, std::move(builder).finish());
      const PartitionRecords records{.partition = 0, .records = std::move(batch)};
      auto call = partition->produce(records, {.acks = -1, .timeout = std::chrono::seconds(5)});
      MR_CO_TRY(const auto produced, co_await call.done);
      if (produced.error != ErrorCode::none) co_return Error{Errc::internal, produced.message};
      // Nothing is acknowledged before it is on stable storage.
      EXPECT_GT(partition->recovery_point(), produced.base_offset);
    }
    co_return {};
  }

  testing::SimWorld world_{3};
  testing::SimEnvironment& node_ = world_.add_node("b1");
  OneAtATime one_at_a_time_{node_.workers()};
  Opening opening_{node_.workers(), one_at_a_time_};
  std::optional<testing::LoadedPlugin> plugin_;
  std::unique_ptr<Partition> partition_;
};

TEST_F(GroupCommitTest, RequestsThatComeWhileASyncIsUnderWayShareTheNextOne) {
  const auto before = syncs();
  std::vector<Pending<>> sending;
  for (int at = 0; at < producers; ++at) {
    sending.push_back(start(shard(), send(partition_.get(), requests_of_each)));
  }
  const auto all_sent = [&] {
    return std::ranges::all_of(sending, [](const auto& one) { return one.is_ready(); });
  };
  ASSERT_TRUE(world_.run_until(all_sent, std::chrono::minutes(1)));
  for (auto& one : sending) {
    const auto sent = one.await_resume();
    EXPECT_TRUE(sent) << sent.error().detail;
  }
  EXPECT_EQ(partition_->log_end(), Offset{std::int64_t{producers} * requests_of_each});
  const auto asked = syncs() - before;
  EXPECT_GE(asked, static_cast<std::size_t>(requests_of_each));
  EXPECT_LE(asked, static_cast<std::size_t>(2 * requests_of_each + 1)) << "for 128 requests";
}

}  // namespace
}  // namespace millrace::kernel
