// Snapshots of aggregates: their file, and that a load from one gives what a replay gives.
#include "kernel/streams/snapshots.h"

#include <gmock/gmock.h>

#include "aggregate_fixture.h"

namespace millrace::kernel {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

Buffer file_of(Offset at) {
  SnapshotFileWriter writer;
  writer.put(as_bytes("key"), as_bytes("value"));
  writer.put(as_bytes(""), as_bytes(std::string(300, 'x')));
  return std::move(writer).finish(at);
}

TEST(SnapshotFileTest, GivesBackWhatWasPut) {
  auto reader = SnapshotFileReader::open(file_of(Offset{7}), Offset{7});
  ASSERT_TRUE(reader) << to_string(reader.error());
  auto entry = reader->next();
  ASSERT_TRUE(entry);
  EXPECT_EQ(as_text(entry->key), "key");
  EXPECT_EQ(as_text(entry->value), "value");
  entry = reader->next();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->key.size(), 0u);
  EXPECT_EQ(entry->value.size(), 300u);
  EXPECT_FALSE(reader->next());
}

TEST(SnapshotFileTest, RefusesWhatIsDamagedOrOfAnotherOffset) {
  const auto file = file_of(Offset{7});
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(SnapshotFileReader::open(file.slice(0, size), Offset{7})) << size;
  }
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::string damaged(file.text());
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(SnapshotFileReader::open(Buffer::copy_of(damaged), Offset{7})) << at;
  }
  const auto other = SnapshotFileReader::open(file, Offset{8});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().detail, HasSubstr("another offset"));
}

TEST(SnapshotFileTest, RefusesALaterVersion) {
  std::string later(file_of(Offset{7}).text());
  later[5] = 2;
  const auto refused = SnapshotFileReader::open(Buffer::copy_of(later), Offset{7});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::incompatible);
  EXPECT_EQ(refused.error().detail, "snapshot: of version 2, and this broker knows version 1");
}

class AggregateSnapshotsTest : public AggregateTest {
 protected:
  static constexpr OperatorSettings every_ten{.snapshot_events = 10, .snapshot_bytes = 1UL << 40};

  void write(int from, int to) {
    for (int n = from; n < to; ++n) {
      ask("a", [n](Ledger&, Command& command, Context& context) {
        context.emit(as_bytes("k" + std::to_string(n % 7)), as_bytes(std::to_string(n)));
        if (n % 5 == 0) context.emit(as_bytes("k" + std::to_string(n % 3)), std::nullopt);
        context.answer(command.reply_to, nullptr);
      });
    }
    settle();
  }
  std::map<std::string, std::string> state() {
    std::map<std::string, std::string> texts;
    ask("a", [&texts](Ledger& ledger, Command& command, Context& context) {
      texts = ledger.texts;
      context.answer(command.reply_to, nullptr);
    });
    return texts;
  }
  std::vector<AuxEntry> stored() {
    const auto partition = partition_at(partition_of("a"));
    auto entries = world_.run(owner(), [&] { return partition->aggregate_snapshots(); });
    EXPECT_TRUE(entries);
    return *std::move(entries);
  }
  void put(Offset at, Buffer value) {
    const auto partition = partition_at(partition_of("a"));
    ASSERT_TRUE(world_.run(owner(), [&] { return partition->put_aggregate_snapshot(at, value); }));
  }
  Shard& owner() {
    const auto id = partition_of("a");
    return broker_->partitions().owner_of(id.topic, id.partition).shard();
  }
};

TEST_F(AggregateSnapshotsTest, AndWhatFollowsThemGiveWhatTheWholeLogGives) {
  reopen(every_ten);
  write(0, 57);
  const auto live = state();
  EXPECT_GT(script_.snapshots_made, 3);
  script_.replayed = script_.restored = 0;
  reopen(every_ten);
  EXPECT_EQ(state(), live);
  EXPECT_EQ(script_.restored, 1);
  EXPECT_LE(script_.replayed, 12);
  EXPECT_GT(script_.replayed, 0);

  for (const auto& entry : stored()) put(entry.at, {});
  script_.replayed = script_.restored = 0;
  reopen(every_ten);
  EXPECT_EQ(state(), live);
  EXPECT_EQ(script_.restored, 0);
  EXPECT_EQ(script_.replayed, 57 + 12);
}

TEST_F(AggregateSnapshotsTest, AreLeftOutWhereThereAreNone) {
  script_.snapshots = false;
  reopen(every_ten);
  write(0, 57);
  const auto live = state();
  reopen(every_ten);
  EXPECT_EQ(state(), live);
  EXPECT_TRUE(stored().empty());
}

TEST_F(AggregateSnapshotsTest, ThatAreDamagedArePassedOver) {
  reopen(every_ten);
  write(0, 57);
  const auto live = state();
  auto entries = stored();
  ASSERT_GE(entries.size(), 2u);
  std::string damaged(entries.back().value.text());
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  put(entries.back().at, Buffer::copy_of(damaged));
  script_.replayed = script_.restored = 0;
  reopen(every_ten);
  EXPECT_EQ(state(), live);
  EXPECT_EQ(script_.restored, 1);
  EXPECT_GT(script_.replayed, 10);
}

TEST_F(AggregateSnapshotsTest, OfWhatACrashHasTakenAreRemoved) {
  reopen(every_ten);
  write(0, 5);
  const auto live = state();
  SnapshotFileWriter writer;
  writer.put(as_bytes("k1"), as_bytes("from nowhere"));
  const Offset beyond{1000};
  auto& shard = owner();
  const auto id = partition_of("a");
  auto partition = partition_at(id);
  // As the log was once, before its tail was lost.
  ASSERT_TRUE(world_.run(shard, [&] {
    return partition->put_aggregate_snapshot(beyond, std::move(writer).finish(beyond));
  }));
  reopen(every_ten);
  EXPECT_EQ(state(), live);
  for (const auto& entry : stored()) EXPECT_LT(entry.at, beyond);
}

TEST_F(AggregateSnapshotsTest, WaitForTheHighWatermark) {
  ask("a", AggregateTest::put("one"));
  reopen(every_ten);
  const auto id = partition_of("a");
  hold(id, true);
  for (int n = 0; n < 30; ++n) begin("a", AggregateTest::put(std::to_string(n)));
  world_.run_for(seconds(1));
  EXPECT_TRUE(stored().empty());
  hold(id, false);
  settle();
  EXPECT_FALSE(stored().empty());
}

TEST_F(AggregateSnapshotsTest, AreTakenAtTheEndWhereAReplayWouldBeLong) {
  for (int n = 0; n < 300; ++n) {
    ask("a", [n](Ledger&, Command& command, Context& context) {
      for (int m = 0; m < 4; ++m) context.emit(as_bytes("k"), as_bytes(std::to_string(n + m)));
      context.answer(command.reply_to, nullptr);
    });
  }
  EXPECT_EQ(script_.snapshots_made, 0);
  reopen();
  EXPECT_EQ(script_.snapshots_made, 1);
  EXPECT_EQ(script_.replayed, 0);
  EXPECT_EQ(state().at("k"), "302");
}

}  // namespace
}  // namespace millrace::kernel
