// What the scrubber tells, how often, how fast it goes, and what it leaves alone.
#include "kernel/broker/scrubber.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/filelog/entry.h>

#include "tests/unit/kernel/broker/broker_fixture.h"

namespace millrace::kernel {
namespace {

using namespace std::chrono_literals;

class ScrubberTest : public BrokerTest {
 protected:
  // With no more files open than a test needs to have some closed.
  void begin(const std::string& bytes_per_second = "1048576") {
    defaults_["log.scrub.interval.ms"] = "60000";
    defaults_["log.scrub.bytes.per.second"] = bytes_per_second;
    const auto path = std::string(MILLRACE_PLUGIN_DIR) + "/storage/filelog.so";
    auto loaded = testing::load_plugin(path, node_, {{"open_files_max", std::int64_t{16}}},
                                       {{"broker.data", "/data"}});
    ASSERT_TRUE(loaded) << to_string(loaded.error());
    plugin_.emplace(*std::move(loaded));
    own_storage_ = plugin_->registered().storage.get();
    restart();
  }
  void TearDown() override {
    own_storage_ = nullptr;
    restart();
    plugin_.reset();
  }
  void fill(int partition, int batches, std::size_t bytes) {
    for (int at = 0; at < batches; ++at) {
      const auto produced =
          produce(0, produce_request("orders", {partition}, std::string(bytes, '.')));
      ASSERT_TRUE(produced);
      ASSERT_EQ(produced->topics.front().partitions.front().error, ErrorCode::none);
    }
  }
  void create_orders(std::int32_t partitions, const std::string& segment_bytes) {
    NewTopic topic;
    topic.name = "orders";
    topic.partitions = partitions;
    topic.configs = {{"segment.bytes", segment_bytes}, {"file.delete.delay.ms", "0"}};
    ASSERT_EQ(create(topic).at(0).error, ErrorCode::none);
  }
  void delete_orders() {
    const auto deleted = on_shard(0, [this] {
      std::vector<TopicName> topics;
      topics.push_back({"orders", {}});
      return broker_->admin().delete_topics(session(0), std::move(topics), 5s);
    });
    ASSERT_TRUE(deleted);
  }
  std::vector<std::string> segments(int partition = 0) {
    const auto folder = "/data/orders-" + std::to_string(partition);
    const auto files = node_.files().list(folder);
    EXPECT_TRUE(files);
    std::vector<std::string> logs;
    for (const auto& file : *files) {
      if (file.name.ends_with(".log")) logs.push_back(folder + "/" + file.name);
    }
    return logs;
  }
  void flip(const std::string& path, std::uint64_t position) {
    ASSERT_TRUE(node_.files().flip_bit(path, position));
  }
  auto told(const std::string& what = "a batch on the disk is corrupt") {
    return std::ranges::count_if(log_.lines(),
                                 [&what](const std::string& line) { return line.contains(what); });
  }
  std::int64_t corrupt() {
    return broker_->parts().metrics.gauge("millrace_log_corrupt_batches", "").value();
  }
  std::uint64_t scrubbed() {
    return broker_->parts().metrics.counter("millrace_log_scrubbed_bytes_total", "").value();
  }
  void run_into_a_pass() {
    ASSERT_TRUE(world_.run_until([this] { return scrubbed() > 0; }, 2min));
  }

  static constexpr std::uint64_t in_records = 100;

 private:
  std::optional<testing::LoadedPlugin> plugin_;
};

TEST_F(ScrubberTest, WhatStaysCorruptIsToldOnce) {
  begin();
  create_orders(1, "2000");
  fill(0, 60, 200);
  const auto logs = segments();
  ASSERT_GT(logs.size(), 4U);
  flip(logs[1], in_records);
  flip(logs[3], in_records);
  world_.run_for(70s);
  EXPECT_EQ(told(), 2);
  EXPECT_EQ(told(logs[1]), 1);
  EXPECT_EQ(corrupt(), 2);
  world_.run_for(130s);
  EXPECT_EQ(told(), 2) << "by the passes that follow";
  EXPECT_EQ(corrupt(), 2);
  flip(logs[1], in_records);
  world_.run_for(65s);
  EXPECT_EQ(corrupt(), 1);
  flip(logs[1], in_records);
  world_.run_for(65s);
  EXPECT_EQ(told(), 3) << "what was sound meanwhile is news";
  EXPECT_EQ(corrupt(), 2);
  delete_orders();
  world_.run_for(65s);
  EXPECT_EQ(corrupt(), 0);
}

TEST_F(ScrubberTest, OfAFileThatIsAllCorruptTheFirstAreTold) {
  begin();
  create_orders(1, "12000");
  fill(0, 60, 200);
  const auto path = segments().front();
  const auto file = node_.files().open(path, OpenMode::read);
  ASSERT_TRUE(file);
  filelog::EntryScanner scanner(**file, 0, *(*file)->size());
  std::int64_t batches = 0;
  for (auto entry = scanner.next(); entry && *entry; entry = scanner.next(), ++batches) {
    flip(path, (*entry)->position + in_records);
  }
  ASSERT_GT(batches, 30);
  world_.run_for(190s);
  EXPECT_EQ(corrupt(), batches);
  EXPECT_EQ(told(), static_cast<std::int64_t>(Scrubber::told_max));
  EXPECT_EQ(told("more batches of a file on the disk are corrupt"), 1);
}

TEST_F(ScrubberTest, AFileThatIsGoneIsToldAndKeepsNoneOfTheOthersFromBeingLookedAt) {
  begin();
  create_orders(1, "2000");
  fill(0, 120, 200);
  const auto logs = segments();
  ASSERT_TRUE(node_.files().remove(logs[1]));
  flip(logs[2], in_records);
  world_.run_for(190s);
  EXPECT_EQ(told(), 2);
  EXPECT_EQ(corrupt(), 2);
}

TEST_F(ScrubberTest, WhatIsDeletedMeanwhileIsNoDamageAndIsLetGo) {
  begin("131072");
  const auto open_before = node_.files().files_open();
  create_orders(1, "2000000");
  fill(0, 25, 100'000);
  flip(segments().front(), 1'500'000);
  run_into_a_pass();
  delete_orders();
  world_.run_for(5s);
  EXPECT_LE(node_.files().files_open(), open_before);
  world_.run_for(120s);
  EXPECT_LT(scrubbed(), 600'000);
  EXPECT_EQ(told(), 0);
  EXPECT_EQ(corrupt(), 0);
}

TEST_F(ScrubberTest, TheRateIsOfAllShardsTogether) {
  constexpr std::uint64_t rate = 131'072;
  begin(std::to_string(rate));
  create_orders(2, "1000000");
  for (const int partition : {0, 1}) fill(partition, 70, 50'000);
  run_into_a_pass();
  world_.run_for(10s);
  EXPECT_GT(scrubbed(), 9 * rate);
  EXPECT_LT(scrubbed(), 15 * rate);
}

TEST_F(ScrubberTest, ARateOfNothingMeansNever) {
  begin("0");
  create_orders(1, "2000");
  fill(0, 60, 200);
  flip(segments()[0], in_records);
  world_.run_for(130s);
  EXPECT_EQ(told(), 0);
}

TEST_F(ScrubberTest, AStopEndsAPassThatWaitsForDays) {
  begin("1");
  create_orders(1, "2000");
  fill(0, 60, 200);
  run_into_a_pass();
  world_.run_for(1s);
  const auto before = world_.now();
  own_storage_ = nullptr;
  restart();
  EXPECT_LT(world_.now() - before, 5s);
}

}  // namespace
}  // namespace millrace::kernel
