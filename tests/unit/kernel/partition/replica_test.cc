// Replicas of one partition, each with a log and a lease of its own, told by hand who leads.
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/partition/partition.h"
#include "tests/unit/kernel/partition/partition_fixture.h"

namespace millrace::kernel::testing {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t huge = std::int64_t{1} << 40;

class ReplicaTest : public ::testing::Test, protected InSyncWatch {
 protected:
  struct Replica {
    explicit Replica(Environment& environment) : storage(environment) {}
    TestStorage storage;
    LeaseClock lease;
    std::unique_ptr<Partition> partition;
    Epoch epoch;
  };

  ReplicaTest() {
    for (const int id : {1, 2, 3}) {
      replicas[id] = std::make_unique<Replica>(environment);
      replicas[id]->lease.extend(MonoTime(seconds(huge / 1'000'000)));
      open(id);
    }
  }
  void TearDown() override {
    for (auto& [id, replica] : replicas) {
      if (replica->partition) close(id);
    }
  }

  Partition& at(int id) { return *replicas[id]->partition; }
  StoredLog& log_of(int id) { return replicas[id]->storage.stored; }

  void open(int id, std::int64_t high_watermark = 0, const ConfigMap& overrides = {}) {
    auto& replica = *replicas[id];
    auto config = TopicConfig::parse({}, overrides);
    ASSERT_TRUE(config);
    PartitionHost host{.environment = environment,
                       .shard = environment.shard(),
                       .storage = replica.storage,
                       .codecs = codecs,
                       .log = Log(log, "partition"),
                       .opening = batch_opening,
                       .broker = id,
                       .lease = &replica.lease,
                       .in_sync = this,
                       .lost = &lost};
    auto opening = Partition::open(std::move(host), {"topic", 3}, {}, *config, Epoch{-1},
                                   Offset{high_watermark});
    auto opened = run(std::move(opening));
    ASSERT_TRUE(opened) << opened.error().detail;
    replica.partition = *std::move(opened);
  }
  void close(int id) {
    ASSERT_TRUE(run(at(id).close()));
    replicas[id]->partition.reset();
  }
  /// What a clean end would have written is missing.
  void crash(int id, std::int64_t high_watermark) {
    auto aux = log_of(id).aux;
    close(id);
    log_of(id).aux = std::move(aux);
    open(id, high_watermark);
  }

  void lead(int id, int epoch, std::vector<std::int32_t> in_sync, int partition_epoch = 1) {
    Leadership leadership{.leader_epoch = {epoch},
                          .partition_epoch = partition_epoch,
                          .replicas = {1, 2, 3},
                          .in_sync = std::move(in_sync)};
    ASSERT_TRUE(run(at(id).lead(std::move(leadership))));
    replicas[id]->epoch = {epoch};
  }
  void follow(int id, int epoch) {
    ASSERT_TRUE(run(at(id).follow({epoch})));
    replicas[id]->epoch = {epoch};
  }

  /// One fetch of `follower` from `leader`.
  ErrorCode pull(int follower, int leader) {
    const auto epoch = replicas[follower]->epoch;
    const auto step = at(follower).following(epoch);
    EXPECT_TRUE(step) << step.error().detail;
    const PartitionFetch fetch{.partition = 3,
                               .current_leader_epoch = epoch,
                               .from = step->next,
                               .last_fetched_epoch = step->last_epoch,
                               .log_start = at(follower).log_start(),
                               .bytes_max = 1 << 20};
    const ReadContext context{.bytes_max = 1 << 20,
                              .at_least_one = true,
                              .replica = follower,
                              .replica_epoch = 9,
                              .known_epoch = 9};
    auto fetched = run(at(leader).read(fetch, context));
    EXPECT_TRUE(fetched);
    const auto error = fetched->error;
    if (error == ErrorCode::offset_out_of_range) {
      EXPECT_TRUE(run(at(follower).begin_anew(epoch, fetched->log_start)));
    } else if (error == ErrorCode::none) {
      const auto taken = run(at(follower).take_over(epoch, *std::move(fetched)));
      EXPECT_TRUE(taken) << taken.error().detail;
    }
    return error;
  }
  /// Until there is nothing more to say.
  void settle(int leader) {
    for (int round = 0; round < 8; ++round) {
      for (auto& [id, replica] : replicas) {
        if (id != leader && replica->partition && !at(id).leading()) pull(id, leader);
      }
    }
  }

  Buffer batch(const std::string& value, std::int64_t producer = -1, int sequence = -1) const {
    BatchBuilder builder({.producer_id = producer,
                          .producer_epoch = static_cast<std::int16_t>(producer < 0 ? -1 : 0),
                          .base_sequence = sequence});
    builder.add({1'700'000'000'000}, std::nullopt, as_bytes(value));
    return *std::move(builder).finish(codecs);
  }
  Arriving<PartitionProduced> produce(int id, const std::string& value, std::int16_t acks = -1) {
    return produce_batch(id, batch(value), acks);
  }
  Arriving<PartitionProduced> produce_batch(int id, Buffer records, std::int16_t acks = -1) {
    const PartitionRecords wanted{.partition = 3, .records = std::move(records)};
    auto call = at(id).produce(wanted, {.acks = acks, .timeout = seconds(5)});
    auto arriving = Arriving<PartitionProduced>::start(environment.shard(), std::move(call.done));
    environment.run();
    return arriving;
  }
  std::vector<std::string> values(int id) {
    std::vector<std::string> values;
    for (const auto& one : log_of(id).batches) {
      const auto section = open_records(one.header, one.bytes, codecs, 1 << 20);
      EXPECT_TRUE(section && for_each_record(one.header, *section, [&](const RecordView& record) {
                    values.emplace_back(as_text(*record.value));
                    return true;
                  }));
    }
    return values;
  }
  /// Every byte of their logs is the same.
  void expect_same(int one, int other) {
    ASSERT_EQ(log_of(one).batches.size(), log_of(other).batches.size());
    for (std::size_t n = 0; n < log_of(one).batches.size(); ++n) {
      EXPECT_EQ(log_of(one).batches[n].bytes.text(), log_of(other).batches[n].bytes.text());
    }
  }

  template <class T>
  Result<T> run(Task<T> task) {
    auto result = std::make_shared<std::optional<Result<T>>>();
    auto wait = [](Task<T> from, std::shared_ptr<std::optional<Result<T>>> to) -> Task<> {
      to->emplace(co_await std::move(from));
      co_return {};
    };
    spawn(environment.shard(), wait(std::move(task), result), "test");
    environment.run();
    if (!result->has_value()) return Error{Errc::internal, "the task did not end"};
    return std::move(**result);
  }

  void in_sync_due(const TopicPartition&) override { ++due; }

  Codecs codecs;
  TestEnvironment environment;
  OneAtATime one_at_a_time{environment.workers()};
  Opening batch_opening{environment.workers(), one_at_a_time};
  TestLog log;
  std::map<int, std::unique_ptr<Replica>> replicas;
  int due = 0;
  Counter lost;
};

TEST_F(ReplicaTest, AcknowledgesWhatEveryReplicaInSyncHas) {
  lead(1, 1, {1, 2, 3});
  follow(2, 1);
  follow(3, 1);
  const auto produced = produce(1, "a");
  EXPECT_FALSE(produced.arrived());
  EXPECT_EQ(produce(1, "b", 1).value().error, ErrorCode::none) << "acks=1 waits for the leader";
  pull(2, 1);
  pull(2, 1);
  EXPECT_FALSE(produced.arrived());
  pull(3, 1);
  EXPECT_FALSE(produced.arrived()) << "it has been sent, and nobody knows that it has arrived";
  pull(3, 1);
  EXPECT_EQ(produced.value().error, ErrorCode::none);
  EXPECT_EQ(at(1).high_watermark(), Offset{2});
  expect_same(1, 2);
  expect_same(1, 3);
  settle(1);
  EXPECT_EQ(at(2).high_watermark(), Offset{2});
}

TEST_F(ReplicaTest, AConsumerSeesOnlyWhatIsReplicated) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  produce(1, "a", 1);
  const PartitionFetch fetch{.partition = 3, .from = {0}, .bytes_max = 1 << 20};
  const ReadContext consumer{.bytes_max = 1 << 20, .at_least_one = true};
  EXPECT_TRUE(run(at(1).read(fetch, consumer))->records.empty());
  settle(1);
  EXPECT_FALSE(run(at(1).read(fetch, consumer))->records.empty());
}

TEST_F(ReplicaTest, AFollowerServesNoClient) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  EXPECT_EQ(produce(2, "a").value().error, ErrorCode::not_leader_or_follower);
  const PartitionFetch fetch{.partition = 3, .from = {0}, .bytes_max = 1};
  EXPECT_EQ(run(at(2).read(fetch, {}))->error, ErrorCode::not_leader_or_follower);
  const PartitionOffsetQuery query{.partition = 3};
  EXPECT_EQ(run(at(2).find_offset(query, Isolation::read_uncommitted))->error,
            ErrorCode::not_leader_or_follower);
  EXPECT_EQ(at(2).epoch_end(PartitionEpochQuery{.partition = 3}).error,
            ErrorCode::not_leader_or_follower);
}

TEST_F(ReplicaTest, WhoIsNoReplicaIsRefused) {
  lead(1, 1, {1, 2});
  const PartitionFetch fetch{.partition = 3, .from = {0}, .bytes_max = 1};
  EXPECT_EQ(run(at(1).read(fetch, {.replica = 7}))->error, ErrorCode::not_leader_or_follower);
}

TEST_F(ReplicaTest, TooFewInSyncAreRefusedBeforeAndAfter) {
  ASSERT_NO_FATAL_FAILURE(close(1));
  open(1, 0, {{"min.insync.replicas", "2"}});
  lead(1, 1, {1});
  EXPECT_EQ(produce(1, "a").value().error, ErrorCode::not_enough_replicas);
  EXPECT_EQ(produce(1, "b", 1).value().error, ErrorCode::none);
  lead(1, 1, {1, 2}, 2);
  follow(2, 1);
  const auto waiting = produce(1, "c");
  EXPECT_FALSE(waiting.arrived());
  lead(1, 1, {1}, 3);  // the other is gone
  environment.run();
  EXPECT_EQ(waiting.value().error, ErrorCode::not_enough_replicas_after_append);
}

TEST_F(ReplicaTest, WhoLosesTheLeadershipAcknowledgesNothing) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  const auto waiting = produce(1, "a");
  lead(2, 2, {1, 2});
  follow(1, 2);
  environment.run();
  EXPECT_EQ(waiting.value().error, ErrorCode::not_leader_or_follower);
}

TEST_F(ReplicaTest, WhoseLeaseIsOverNeitherAcknowledgesNorServes) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  const auto waiting = produce(1, "a");
  replicas[1]->lease.end();
  pull(2, 1);
  lead(1, 1, {1}, 2);  // an order that was under way: all is replicated now
  environment.run();
  EXPECT_EQ(waiting.value().error, ErrorCode::not_leader_or_follower);
  EXPECT_EQ(produce(1, "b", 1).value().error, ErrorCode::not_leader_or_follower);
  const PartitionFetch fetch{.partition = 3, .from = {0}, .bytes_max = 1};
  EXPECT_EQ(run(at(1).read(fetch, {}))->error, ErrorCode::not_leader_or_follower);
}

TEST_F(ReplicaTest, AnOlderOrderChangesNothing) {
  lead(1, 3, {1, 2});
  follow(1, 2);
  EXPECT_TRUE(at(1).leading());
  EXPECT_EQ(at(1).leader_epoch(), Epoch{3});
  ASSERT_TRUE(run(at(1).lead({.leader_epoch = {2}, .replicas = {1}, .in_sync = {1}})));
  ASSERT_NE(at(1).replicas(), nullptr);
}

TEST_F(ReplicaTest, ATailThatTheNewLeaderHasNotIsCut) {
  lead(1, 1, {1, 2, 3});
  follow(2, 1);
  follow(3, 1);
  produce(1, "a", 1);
  settle(1);
  produce(1, "only here", 1);
  produce(1, "this too", 1);
  lead(2, 2, {2, 3});
  follow(3, 2);
  produce(2, "b", 1);
  settle(2);
  follow(1, 2);
  settle(2);
  EXPECT_THAT(values(1), ElementsAre("a", "b"));
  expect_same(1, 2);
  expect_same(1, 3);
  EXPECT_THAT(log.lines,
              ::testing::Contains("warning: cut the tail of a log that its leader has not"));
}

// Broker 3 has got "a" and "b", and has heard of "c", which is replicated by then.
TEST_F(ReplicaTest, AnUncleanElectionTellsWhatIsLost) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  follow(3, 1);
  produce(1, "a", 1);
  produce(1, "b", 1);
  settle(1);
  produce(1, "c", 1);
  pull(2, 1);
  pull(2, 1);
  produce(1, "d", 1);
  ASSERT_EQ(at(1).high_watermark(), Offset{3});
  // What it is told of the high watermark, without what is below that.
  PartitionFetched told{.partition = 3, .high_watermark = {3}, .log_start = {0}};
  ASSERT_TRUE(run(at(3).take_over({1}, std::move(told))));

  Leadership unclean{.leader_epoch = {2},
                     .partition_epoch = 9,
                     .replicas = {1, 2, 3},
                     .in_sync = {3},
                     .unclean = true};
  ASSERT_TRUE(run(at(3).lead(std::move(unclean))));
  replicas[3]->epoch = {2};
  EXPECT_EQ(log.lines.back(),
            "error: elected as leader without being in sync: replicated records are lost");
  EXPECT_EQ(log.fields.back(), "partition=topic-3 from=2 to=2 ");
  EXPECT_EQ(lost.value(), 1U);

  produce(3, "e", 1);
  follow(1, 2);
  settle(3);
  EXPECT_THAT(values(1), ElementsAre("a", "b", "e"));
  ASSERT_GE(log.lines.size(), 2U);
  EXPECT_EQ(log.fields[log.fields.size() - 2], "partition=topic-3 from=2 to=3 ") << "c and d";
  EXPECT_EQ(log.lines.back(),
            "error: replicated records are lost: an unclean election has chosen a leader without "
            "them");
  EXPECT_EQ(log.fields.back(), "partition=topic-3 from=2 to=2 records=1 ");
  EXPECT_EQ(lost.value(), 2U) << "each tells what it knows";
}

TEST_F(ReplicaTest, AnUncleanElectionOfWhoKnowsNothingTellsFromWhere) {
  lead(1, 1, {1, 2});
  follow(3, 1);
  produce(1, "a", 1);
  settle(1);
  Leadership unclean{.leader_epoch = {2}, .replicas = {1, 3}, .in_sync = {3}, .unclean = true};
  ASSERT_TRUE(run(at(3).lead(std::move(unclean))));
  EXPECT_EQ(log.fields.back(), "partition=topic-3 from=1 ");
  EXPECT_EQ(lost.value(), 0U);
}

// DeleteRecords: what a leader has removed is not gone while a follower could bring it back.
TEST_F(ReplicaTest, RecordsAreGoneWhenNoReplicaInSyncHasThem) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  follow(3, 1);
  for (const auto* value : {"a", "b", "c"}) produce(1, value, 1);
  settle(1);
  const auto trimmed = run(at(1).trim({.partition = 3, .before = {2}}));
  ASSERT_TRUE(trimmed);
  ASSERT_EQ(trimmed->log_start, Offset{2});
  auto waiting = Arriving<PartitionTrimmed>::start(environment.shard(),
                                                   at(1).trimmed_everywhere({2}, seconds(5)));
  environment.run();
  EXPECT_FALSE(waiting.arrived());
  pull(2, 1);
  environment.run();
  EXPECT_FALSE(waiting.arrived()) << "it has been told, and nobody knows that it has heard it";
  pull(2, 1);
  environment.run();
  EXPECT_EQ(waiting.value().error, ErrorCode::none) << "broker 3 is not in sync";
  EXPECT_EQ(waiting.value().log_start, Offset{2});
  EXPECT_EQ(at(2).log_start(), Offset{2});
}

TEST_F(ReplicaTest, WhoWaitsForRecordsToBeGoneIsAnsweredWhenAnotherLeads) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  produce(1, "a", 1);
  settle(1);
  ASSERT_TRUE(run(at(1).trim({.partition = 3})));
  auto waiting = Arriving<PartitionTrimmed>::start(environment.shard(),
                                                   at(1).trimmed_everywhere({1}, seconds(5)));
  environment.run();
  follow(1, 2);
  environment.run();
  EXPECT_EQ(waiting.value().error, ErrorCode::not_leader_or_follower);
}

TEST_F(ReplicaTest, WhoDoesNotHearOfATrimIsWaitedForInVain) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  produce(1, "a", 1);
  settle(1);
  ASSERT_TRUE(run(at(1).trim({.partition = 3})));
  auto waiting = Arriving<PartitionTrimmed>::start(environment.shard(),
                                                   at(1).trimmed_everywhere({1}, seconds(5)));
  environment.advance(seconds(6));
  EXPECT_EQ(waiting.value().error, ErrorCode::request_timed_out);
  EXPECT_EQ(waiting.value().log_start, Offset{0});
}

// Three leaders in turn, each of which wrote what nobody else got.
TEST_F(ReplicaTest, LogsThatDivergedInSeveralEpochsComeTogether) {
  lead(1, 1, {1, 2, 3});
  follow(2, 1);
  follow(3, 1);
  produce(1, "common", 1);
  settle(1);
  produce(1, "1a", 1);
  produce(1, "1b", 1);
  lead(2, 2, {2});
  produce(2, "2a", 1);
  produce(2, "2b", 1);
  produce(2, "2c", 1);
  lead(3, 3, {3});
  produce(3, "3a", 1);
  follow(1, 3);
  follow(2, 3);
  settle(3);
  EXPECT_THAT(values(3), ElementsAre("common", "3a"));
  expect_same(1, 3);
  expect_same(2, 3);
  EXPECT_EQ(at(1).epoch_end(Epoch{1}), at(3).epoch_end(Epoch{1}));
  EXPECT_EQ(at(2).epoch_end(Epoch{3}), at(3).epoch_end(Epoch{3}));
}

TEST_F(ReplicaTest, AFollowerThatTheLeadersLogHasLeftBehindBeginsAnew) {
  lead(1, 1, {1});
  for (const auto* value : {"a", "b", "c"}) produce(1, value, 1);
  ASSERT_TRUE(run(at(1).trim({.partition = 3, .before = {2}})));
  follow(2, 1);
  settle(1);
  EXPECT_EQ(at(2).offsets().log_start, Offset{2});
  EXPECT_EQ(at(2).log_end(), Offset{3});
  EXPECT_EQ(at(2).high_watermark(), Offset{3});
}

TEST_F(ReplicaTest, AFollowerKeepsWhatItsLeaderKeeps) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  for (const auto* value : {"a", "b", "c"}) produce(1, value, 1);
  settle(1);
  ASSERT_TRUE(run(at(1).trim({.partition = 3, .before = {2}})));
  pull(2, 1);
  EXPECT_EQ(at(2).offsets().log_start, Offset{2});
}

TEST_F(ReplicaTest, WhoStartsCountsAsReplicatedWhatWasNoted) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  produce(1, "a", 1);
  settle(1);
  produce(1, "b", 1);
  crash(1, 1);
  EXPECT_EQ(at(1).high_watermark(), Offset{1});
  lead(1, 2, {1, 2});
  EXPECT_EQ(at(1).high_watermark(), Offset{1}) << "nobody knows whether b is replicated";
  follow(2, 2);
  settle(1);
  EXPECT_EQ(at(1).high_watermark(), Offset{2});
  expect_same(1, 2);
}

TEST_F(ReplicaTest, WhatWasCutFromAProducersBatchesIsNotTakenForRepeated) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  produce_batch(1, batch("a", 7, 0), 1);
  settle(1);
  produce_batch(1, batch("lost", 7, 1), 1);
  lead(2, 2, {2});
  follow(1, 2);
  settle(2);
  lead(1, 3, {1});
  const auto again = produce_batch(1, batch("again", 7, 1), 1);
  EXPECT_EQ(again.value().error, ErrorCode::none);
  EXPECT_EQ(again.value().base_offset, Offset{1});
  EXPECT_THAT(values(1), ElementsAre("a", "again"));
}

TEST_F(ReplicaTest, AFollowerKnowsTheProducersWhenItLeads) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  produce_batch(1, batch("a", 7, 0), 1);
  settle(1);
  lead(2, 2, {2});
  const auto again = produce_batch(2, batch("a", 7, 0), 1);
  EXPECT_EQ(again.value().error, ErrorCode::none);
  EXPECT_EQ(again.value().base_offset, Offset{0});
  EXPECT_THAT(values(2), ElementsAre("a")) << "it was taken for repeated";
}

TEST_F(ReplicaTest, DamagedBytesAreNotAppended) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  auto good = batch("a");
  std::string bytes(good.text());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  PartitionFetched fetched{.partition = 3, .high_watermark = {0}, .log_start = {0}};
  fetched.records = Payload(Buffer::copy_of(as_bytes(bytes)));
  const auto taken = run(at(2).take_over({1}, std::move(fetched)));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Errc::corrupt);
  EXPECT_THAT(values(2), IsEmpty());
}

TEST_F(ReplicaTest, WhatFollowsInAnotherEpochIsNotTakenOver) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  follow(2, 2);
  const auto taken = run(at(2).take_over({1}, {}));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Errc::fenced);
}

TEST_F(ReplicaTest, WhoHasCaughtUpIsProposedAndWaitedForFromThenOn) {
  lead(1, 1, {1});
  follow(2, 1);
  produce(1, "a");
  pull(2, 1);
  pull(2, 1);
  EXPECT_GT(due, 0);
  const auto wanted = at(1).want_in_sync({});
  ASSERT_TRUE(wanted);
  EXPECT_THAT(wanted->in_sync, ElementsAre(1, 2));
  const auto waiting = produce(1, "b");
  EXPECT_FALSE(waiting.arrived());
  at(1).refuse_in_sync();
  environment.run();
  EXPECT_EQ(waiting.value().error, ErrorCode::none);
}

TEST_F(ReplicaTest, WhoLagsIsProposedToLeaveAndNoMoreWaitedForOnceItHas) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  pull(2, 1);
  const auto waiting = produce(1, "a");
  environment.advance(seconds(4));
  EXPECT_FALSE(at(1).want_in_sync({.time = seconds(10)}).has_value());
  const auto wanted = at(1).want_in_sync({.time = seconds(3)});
  ASSERT_TRUE(wanted);
  EXPECT_THAT(wanted->in_sync, ElementsAre(1));
  EXPECT_FALSE(waiting.arrived());
  lead(1, 1, {1}, 2);
  environment.run();
  EXPECT_EQ(waiting.value().error, ErrorCode::none);
}

TEST_F(ReplicaTest, ALeaderThatHasLostAWriteHandsThePartitionOver) {
  lead(1, 1, {1, 2});
  follow(2, 1);
  pull(2, 1);
  log_of(1).written_error = Error{Errc::io, "the disk is gone"};
  EXPECT_EQ(produce(1, "a").value().error, ErrorCode::kafka_storage_error);
  EXPECT_EQ(due, 1);
  const auto wanted = at(1).want_in_sync({});
  ASSERT_TRUE(wanted);
  EXPECT_THAT(wanted->in_sync, ElementsAre(2));
  EXPECT_THAT(wanted->broker_epochs, ElementsAre(9));
  EXPECT_EQ(produce(1, "b").value().error, ErrorCode::kafka_storage_error);
  EXPECT_EQ(due, 1) << "it is being asked for";
  // Refused: it is asked for again, not by every request.
  at(1).refuse_in_sync();
  environment.advance(seconds(2));
  produce(1, "c");
  produce(1, "d");
  EXPECT_EQ(due, 2);

  lead(2, 2, {2});
  follow(1, 2);
  EXPECT_EQ(produce(2, "e").value().error, ErrorCode::none);
  EXPECT_FALSE(at(1).following({2})) << "not before its log is opened again";
}

TEST_F(ReplicaTest, AFollowerWhoseDiskStaysFullOrHasLostAWriteCannotFollow) {
  lead(1, 1, {1, 2, 3});
  follow(2, 1);
  produce(1, "a");
  const auto fails = [&] {
    const PartitionFetch fetch{
        .partition = 3, .current_leader_epoch = {1}, .from = {0}, .bytes_max = 1 << 20};
    const ReadContext context{.bytes_max = 1 << 20, .at_least_one = true, .replica = 2};
    auto fetched = run(at(1).read(fetch, context));
    EXPECT_TRUE(fetched);
    return !run(at(2).take_over({1}, *std::move(fetched)));
  };
  due = 0;
  log_of(2).append_error = Error{Errc::io, "no space left"};
  EXPECT_TRUE(fails());
  EXPECT_FALSE(at(2).cannot_follow()) << "there may be room in a moment";
  EXPECT_EQ(due, 0);
  environment.advance(seconds(1));
  EXPECT_TRUE(fails());
  EXPECT_TRUE(at(2).cannot_follow());
  EXPECT_EQ(due, 1);
  EXPECT_TRUE(fails());
  EXPECT_EQ(due, 1) << "not each try asks";
  log_of(2).append_error.reset();
  pull(2, 1);
  EXPECT_FALSE(at(2).cannot_follow());

  produce(1, "b");
  environment.advance(seconds(2));
  log_of(2).written_error = Error{Errc::io, "the disk is gone"};
  EXPECT_TRUE(fails());
  EXPECT_TRUE(at(2).cannot_follow());
  EXPECT_EQ(due, 2);
}

TEST_F(ReplicaTest, ALeaderThatIsAloneInSyncStaysOneWhateverItsDisk) {
  lead(1, 1, {1});
  follow(2, 1);
  log_of(1).written_error = Error{Errc::io, "the disk is gone"};
  produce(1, "a");
  EXPECT_FALSE(at(1).want_in_sync({}));
}

TEST_F(ReplicaTest, ALeaderWhoseDiskStaysFullHandsThePartitionOverAfterAWhile) {
  const auto fails = [&](int seconds_later) {
    environment.advance(seconds(seconds_later));
    EXPECT_EQ(produce(1, "a").value().error, ErrorCode::kafka_storage_error);
    return at(1).want_in_sync({}).has_value();
  };
  lead(1, 1, {1, 2});
  follow(2, 1);
  pull(2, 1);
  log_of(1).append_error = Error{Errc::io, "the disk is full"};
  EXPECT_FALSE(fails(0));
  EXPECT_FALSE(fails(2));
  // There is room for a moment.
  log_of(1).append_error.reset();
  produce(1, "b", 1);
  pull(2, 1);
  pull(2, 1);
  log_of(1).append_error = Error{Errc::io, "the disk is full"};
  EXPECT_FALSE(fails(2));
  EXPECT_FALSE(fails(2));
  EXPECT_EQ(due, 0);
  EXPECT_TRUE(fails(2));
  EXPECT_EQ(due, 1);
  EXPECT_THAT(at(1).want_in_sync({})->in_sync, ElementsAre(2));

  // It leads again, and is still full: the partition does not go to and fro all the time.
  follow(1, 2);
  lead(1, 3, {1, 2}, 3);
  EXPECT_FALSE(fails(4));
  EXPECT_TRUE(fails(3));
}

}  // namespace
}  // namespace millrace::kernel::testing
