// Which logs are compacted, when, and what is told of it.
#include "kernel/broker/log_cleaner.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/kernel/broker/broker_fixture.h"
#include "tests/unit/kernel/partition/test_storage.h"

namespace millrace::kernel {
namespace {

using namespace std::chrono_literals;
using ::testing::SizeIs;

TEST(LogCleanerSettingsTest, AreKafkas) {
  const auto unset = LogCleanerSettings::of({});
  EXPECT_TRUE(unset.enable);
  EXPECT_EQ(unset.threads, 1);
  EXPECT_EQ(unset.backoff, 15s);
  EXPECT_EQ(unset.io_bytes_per_second, RateLimit::unlimited);
  EXPECT_EQ(unset.means.map_bytes_max, 134'217'728);
  EXPECT_EQ(unset.means.map_load_factor_max, 0.9);
  EXPECT_EQ(unset.means.step_bytes, 524'288);

  const auto set = LogCleanerSettings::of({{"log.cleaner.enable", "false"},
                                           {"log.cleaner.threads", "4"},
                                           {"log.cleaner.backoff.ms", "100"},
                                           {"log.cleaner.io.max.bytes.per.second", "1500.5"},
                                           {"log.cleaner.dedupe.buffer.size", "4000000"},
                                           {"log.cleaner.io.buffer.load.factor", "0.5"},
                                           {"log.cleaner.io.buffer.size", "1000"}});
  EXPECT_FALSE(set.enable);
  EXPECT_EQ(set.threads, 4);
  EXPECT_EQ(set.backoff, 100ms);
  EXPECT_EQ(set.io_bytes_per_second, 1500);
  EXPECT_EQ(set.means.map_bytes_max, 1'000'000);  // each
  EXPECT_EQ(set.means.map_load_factor_max, 0.5);
  EXPECT_EQ(set.means.step_bytes, 1000);
  EXPECT_EQ(
      LogCleanerSettings::of({{"log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308"}})
          .io_bytes_per_second,
      RateLimit::unlimited);
}

/// Counts how often it is noted how far logs are compacted.
class CountedStorage final : public Storage {
 public:
  explicit CountedStorage(Storage& under) : under_(under) {}

  Task<> lock() override { return under_.lock(); }
  Task<DirectoryOwner> owner() override { return under_.owner(); }
  Task<> set_owner(DirectoryOwner owner) override { return under_.set_owner(std::move(owner)); }
  Task<std::vector<FoundPartition>> list() override { return under_.list(); }
  Task<Opened> open(TopicPartition partition, LogOptions options) override {
    return under_.open(std::move(partition), options);
  }
  Task<> remove(TopicPartition partition) override { return under_.remove(std::move(partition)); }
  Task<> checkpoint(CheckpointKind kind, std::vector<PartitionOffset> offsets) override {
    if (kind == CheckpointKind::cleaner) ++notes;
    return under_.checkpoint(kind, std::move(offsets));
  }
  Task<std::vector<PartitionOffset>> checkpointed(CheckpointKind kind) override {
    return under_.checkpointed(kind);
  }
  Task<> close() override { return under_.close(); }

  int notes = 0;

 private:
  Storage& under_;
};

class LogCleanerTest : public BrokerTest {
 protected:
  void create_compacted(const std::string& name,
                        std::vector<std::pair<std::string, std::optional<std::string>>> more = {}) {
    NewTopic topic;
    topic.name = name;
    topic.partitions = 1;
    topic.configs = {{"cleanup.policy", "compact"}, {"segment.bytes", "1000"}};
    for (auto& one : more) topic.configs.push_back(std::move(one));
    ASSERT_EQ(create(topic).at(0).error, ErrorCode::none);
  }
  void fill(const std::string& topic, int records, const std::string& key = "key") {
    for (int at = 0; at < records; ++at) {
      send(topic, key, "value " + std::to_string(at) + std::string(100, '.'));
    }
  }
  void send(const std::string& topic, const std::string& key, std::optional<std::string> value) {
    BatchBuilder builder({});
    builder.add(node_.clock().wall(), as_bytes(key),
                value ? std::optional(as_bytes(*value)) : std::nullopt);
    auto request = produce_request(topic, {0}, "");
    request.topics.front().partitions.front().records = *std::move(builder).finish();
    const auto produced = produce(0, std::move(request));
    ASSERT_TRUE(produced);
    ASSERT_EQ(produced->topics.front().partitions.front().error, ErrorCode::none);
  }
  std::size_t records_in(const std::string& topic) {
    std::size_t records = 0;
    for (std::int64_t from = 0;;) {
      const auto fetched =
          fetch(0, fetch_request(topic, {{.partition = 0, .from = {from}, .bytes_max = 1 << 20}}));
      EXPECT_TRUE(fetched);
      const auto& partition = fetched->topics.front().partitions.front();
      const auto bytes = partition.records.flatten();
      if (bytes->empty()) return records;
      for (std::size_t at = 0; at < bytes->size();) {
        const auto header = read_batch_header(bytes->slice(at));
        records += static_cast<std::size_t>(header->record_count);
        from = header->last_offset().value + 1;
        at += header->total_bytes();
      }
      if (from >= partition.high_watermark.value) return records;
    }
  }
  std::int64_t gauge(const char* name) { return broker_->parts().metrics.gauge(name, "").value(); }
  std::uint64_t counter(const char* name) {
    return broker_->parts().metrics.counter(name, "").value();
  }
  std::vector<PartitionOffset> noted() {
    auto read = world_.run(node_.control(), [this] {
      return broker_->parts().storage.checkpointed(CheckpointKind::cleaner);
    });
    EXPECT_TRUE(read);
    return *read;
  }
  CompactionStatus status(const std::string& topic) {
    const auto& owner = broker_->partitions().owner_of(topic, 0);
    return owner.find(topic, 0)->compaction();
  }
};

TEST_F(LogCleanerTest, CompactsWhatIsDirtyAndNotesHowFar) {
  create_compacted("states");
  create("events", 1);
  fill("states", 100);
  fill("events", 100);
  world_.run_for(40s);
  EXPECT_LT(records_in("states"), 12);  // one, and what is in the active segment
  EXPECT_EQ(records_in("events"), 100);
  EXPECT_EQ(counter("millrace_log_cleaner_passes_total"), 1);
  EXPECT_GT(counter("millrace_log_cleaner_removed_records_total"), 85);
  EXPECT_GT(counter("millrace_log_cleaner_removed_bytes_total"), 5000);
  EXPECT_EQ(gauge("millrace_log_cleaner_max_dirty_percent"), 0);
  EXPECT_EQ(gauge("millrace_log_cleaner_uncleanable_partitions"), 0);
  EXPECT_EQ(gauge("millrace_log_cleaner_last_run_timestamp_seconds"),
            status("states").ended.ms / 1000);
  const auto offsets = noted();
  ASSERT_THAT(offsets, SizeIs(1));
  EXPECT_EQ(offsets[0].partition, (TopicPartition{"states", 0}));
  EXPECT_GT(offsets[0].offset, Offset{85});
  EXPECT_EQ(offsets[0].offset, status("states").cleaned_to);
}

TEST_F(LogCleanerTest, WaitsUntilALogIsDirtyEnough) {
  create_compacted("calm", {{"min.cleanable.dirty.ratio", "1.0"}});
  create_compacted("young", {{"min.compaction.lag.ms", "600000"}});
  fill("calm", 60);
  fill("young", 60);
  world_.run_for(60s);
  EXPECT_EQ(records_in("calm"), 60);
  EXPECT_EQ(records_in("young"), 60);
  EXPECT_EQ(gauge("millrace_log_cleaner_max_dirty_percent"), 100);
  world_.run_for(601s);
  EXPECT_EQ(records_in("calm"), 60);
  EXPECT_LT(records_in("young"), 12);
}

// Nothing was written since, so that the active segment has to be rolled for it.
TEST_F(LogCleanerTest, KeepsTheLongestLag) {
  create_compacted("overdue",
                   {{"min.cleanable.dirty.ratio", "1.0"}, {"max.compaction.lag.ms", "60000"}});
  fill("overdue", 60);
  world_.run_for(30s);
  EXPECT_EQ(records_in("overdue"), 60);
  world_.run_for(60s);
  EXPECT_EQ(records_in("overdue"), 1);
}

TEST_F(LogCleanerTest, K07_ATombstoneGoesInTimeThoughNothingIsWrittenAnyMore) {
  create_compacted("states", {{"delete.retention.ms", "600000"}});
  send("states", "gone", std::nullopt);
  fill("states", 60);
  world_.run_for(590s);
  const auto with_tombstone = records_in("states");
  EXPECT_EQ(counter("millrace_log_cleaner_passes_total"), 1);
  world_.run_for(60s);
  EXPECT_EQ(records_in("states"), with_tombstone - 1);
  world_.run_for(3600s);
  EXPECT_EQ(counter("millrace_log_cleaner_passes_total"), 2);
}

TEST_F(LogCleanerTest, FollowsTheTopicsSettingsAndTheBrokers) {
  defaults_["log.cleaner.enable"] = "false";
  restart();
  create_compacted("states");
  fill("states", 60);
  world_.run_for(60s);
  EXPECT_EQ(records_in("states"), 60);
}

TEST_F(LogCleanerTest, SeveralAtOnceAreCleanedOneAfterTheOther) {
  for (const std::string name : {"a", "b", "c"}) {
    create_compacted(name);
    fill(name, 40);
  }
  world_.run_for(40s);
  for (const std::string name : {"a", "b", "c"}) EXPECT_LT(records_in(name), 12) << name;
  EXPECT_EQ(counter("millrace_log_cleaner_passes_total"), 3);
}

TEST_F(LogCleanerTest, APassTakesAsLongAsTheRateSays) {
  defaults_["log.cleaner.io.max.bytes.per.second"] = "300";
  restart();
  create_compacted("states");
  fill("states", 60);  // about 10 kB, which are read twice
  world_.run_for(60s);
  EXPECT_EQ(gauge("millrace_log_cleaner_running"), 1);
  EXPECT_EQ(counter("millrace_log_cleaner_passes_total"), 0);
  world_.run_for(60s);
  EXPECT_EQ(counter("millrace_log_cleaner_passes_total"), 1);
  EXPECT_LT(records_in("states"), 12);
}

// After a start tombstones of ten thousand logs may be due at once: if all were looked at after
// each pass, that would be a hundred million looks.
TEST_F(LogCleanerTest, ManyLogsThatWantAPassAreLookedAtOnce) {
  auto plugin = millrace::testing::load_plugin(MILLRACE_PLUGIN_DIR "/storage/memory.so", node_);
  ASSERT_TRUE(plugin) << to_string(plugin.error());
  CountedStorage storage(*plugin->registered().storage);
  own_storage_ = &storage;
  restart();
  constexpr int logs = 30;
  for (int at = 0; at < logs; ++at) {
    create_compacted("states-" + std::to_string(at), {{"min.compaction.lag.ms", "60000"}});
    fill("states-" + std::to_string(at), 20);
  }
  world_.run_for(30s);
  ASSERT_EQ(counter("millrace_log_cleaner_passes_total"), 0);
  storage.notes = 0;
  world_.run_for(60s);
  EXPECT_EQ(counter("millrace_log_cleaner_passes_total"), logs);
  EXPECT_GE(storage.notes, 1);
  EXPECT_LE(storage.notes, 3);
  EXPECT_THAT(noted(), SizeIs(logs));
  own_storage_ = nullptr;
  restart();
}

TEST_F(LogCleanerTest, ADeletedTopicIsForgotten) {
  create_compacted("states");
  fill("states", 60);
  world_.run_for(40s);
  ASSERT_THAT(noted(), SizeIs(1));
  const auto deleted = on_shard(0, [this] {
    std::vector<TopicName> topics;
    topics.push_back({"states", {}});
    return broker_->admin().delete_topics(session(0), std::move(topics), 5s);
  });
  ASSERT_TRUE(deleted);
  world_.run_for(40s);
  EXPECT_THAT(noted(), SizeIs(0));
  create_compacted("states");
  fill("states", 60);
  world_.run_for(40s);
  EXPECT_LT(records_in("states"), 12);
}

// Storage that rewrites nothing stands for whatever goes wrong with one partition.
TEST_F(LogCleanerTest, AFailureIsToldAndTriedAgain) {
  testing::TestStorage storage(node_);
  own_storage_ = &storage;
  restart();
  create_compacted("states");
  fill("states", 6);
  storage.stored.segment_bases.push_back(storage.stored.end());
  fill("states", 1);
  world_.run_for(40s);
  EXPECT_EQ(gauge("millrace_log_cleaner_uncleanable_partitions"), 1);
  EXPECT_GT(gauge("millrace_log_cleaner_uncleanable_bytes"), 0);
  EXPECT_TRUE(log_.contains("a log cannot be compacted"));
  EXPECT_TRUE(status("states").failed);
  EXPECT_EQ(records_in("states"), 7);
  const auto tries = [this] {
    return std::ranges::count_if(log_.lines(), [](const std::string& line) {
      return line.find("a log cannot be compacted") != std::string::npos;
    });
  };
  EXPECT_EQ(tries(), 1);
  world_.run_for(LogCleaner::uncleanable_pause);
  EXPECT_EQ(tries(), 2);
  // A disk that fails may be sound again soon: 15 s, then 30, 60 and 120.
  storage.stored.read_error = Error{Errc::io, "no space left"};
  world_.run_for(LogCleaner::uncleanable_pause);
  const auto soon = tries();
  world_.run_for(240s);
  EXPECT_GE(tries() - soon, 3);
  EXPECT_LE(tries() - soon, 5);
  own_storage_ = nullptr;
  restart();
}

}  // namespace
}  // namespace millrace::kernel
