// What every storage backend must do, as gtest cases. Include it in one source file of a test
// program and name the backend:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, StorageContract, ::testing::Values(StorageCase{"mine",
//   make_subject}));
//
// storage_match.h compares a backend with another one, normally with storage/memory.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/testing/storage_subject.h>

namespace millrace::testing {

struct StorageCase {
  std::string name;
  std::function<std::unique_ptr<StorageSubject>()> make;
  /// False where a restart of the process is the end of the data.
  bool survives_restart = true;
};
inline void PrintTo(const StorageCase& one, std::ostream* out) { *out << one.name; }

class StorageContract : public ::testing::TestWithParam<StorageCase> {
 protected:
  void SetUp() override {
    subject_ = GetParam().make();
    const auto locked = subject_->run(storage().lock());
    ASSERT_TRUE(locked) << to_string(locked.error());
  }
  void TearDown() override {
    if (log_) close();
    const auto closed = subject_->run(storage().close());
    EXPECT_TRUE(closed) << to_string(closed.error());
  }

  Storage& storage() { return subject_->storage(); }
  PartitionLog& log() { return *log_; }

  Opened open(LogOptions options = {}) {
    options_ = options;
    auto opened = required(subject_->run(storage().open(orders, options)));
    log_ = std::move(opened.log);
    return opened;
  }
  void close() {
    const auto closed = subject_->run(log_->close());
    EXPECT_TRUE(closed) << to_string(closed.error());
    log_.reset();
  }
  std::string read(ReadRequest request) { return read_text(*subject_, *log_, request); }
  Errc read_error(Offset from) {
    const auto payload = subject_->run(log_->read(everything_from(from)));
    return payload ? Errc::ok : payload.error().code;
  }
  Offset batch_at(std::int64_t ms) {
    return required(subject_->run(log_->batch_at({ms}))).base_offset;
  }
  void put_aux(AuxKind kind, std::int64_t at, std::string_view value) {
    const auto put = subject_->run(log_->put_aux(kind, {at}, Buffer::copy_of(value)));
    EXPECT_TRUE(put) << to_string(put.error());
  }
  /// "10=a 20=b"
  std::string aux(AuxKind kind) {
    const auto entries = subject_->run(log_->aux(kind));
    if (!entries) return to_string(entries.error());
    std::string text;
    for (const auto& entry : *entries) {
      if (!text.empty()) text += ' ';
      text += std::to_string(entry.at.value) + "=" + std::string(entry.value.text());
    }
    return text;
  }

  std::unique_ptr<LogRewrite> rewrite(Offset from, Offset to) {
    return required(log_->rewrite(from, to));
  }
  static Result<> append_to(LogRewrite& rewrite, std::initializer_list<Buffer> batches) {
    std::vector<BatchParts> parts;
    for (const auto& batch : batches) parts.push_back(parts_of(batch));
    return rewrite.append(parts);
  }
  Errc commit(LogRewrite& rewrite) {
    const auto committed = subject_->run(rewrite.commit());
    return committed ? Errc::ok : committed.error().code;
  }
  /// Four segments of two batches of three records each; the last one is active.
  std::vector<Buffer> fill_four_segments() {
    std::vector<Buffer> batches;
    for (int at = 0; at < 8; ++at) {
      if (at > 0 && at % 2 == 0) EXPECT_TRUE(log_->roll());
      batches.push_back(append_batch(*log_, 3, {1000 + at}));
    }
    return batches;
  }

  std::unique_ptr<StorageSubject> subject_;
  std::unique_ptr<PartitionLog> log_;
  LogOptions options_;
};

TEST_P(StorageContract, MakesAnEmptyLog) {
  EXPECT_TRUE(open().created);
  EXPECT_EQ(log().bounds().start, Offset{0});
  EXPECT_EQ(log().bounds().end, Offset{0});
  EXPECT_EQ(log().bounds().bytes, 0u);
  EXPECT_EQ(read(everything_from({0})), "");
  EXPECT_EQ(read_error({1}), Errc::out_of_range);
  ASSERT_EQ(log().segments().size(), 1u);
  EXPECT_TRUE(log().segments().front().active);
}

TEST_P(StorageContract, ReadsBackWhatWasAppended) {
  open();
  const auto first = append_batch(log(), 3);
  const auto second = append_batch(log(), 2);
  EXPECT_EQ(log().bounds().end, Offset{5});
  EXPECT_EQ(log().bounds().bytes, first.size() + second.size());
  EXPECT_EQ(read(everything_from({0})), joined({first, second}));
  EXPECT_EQ(read(everything_from({5})), "");
}

TEST_P(StorageContract, AppendsSeveralBatchesAtOnce) {
  open();
  const auto first = make_batch({0}, 3, {1000});
  const auto second = make_batch({3}, 1, {1000});
  const std::vector parts{parts_of(first), parts_of(second)};
  const auto one = log().append(parts);
  ASSERT_TRUE(one) << to_string(one.error());
  EXPECT_TRUE(subject_->run(log().written(*one)));
  EXPECT_EQ(read(everything_from({0})), joined({first, second}));
  const auto third = parts_of(make_batch({4}, 1, {1000}));
  const auto two = log().append(std::span(&third, 1));
  ASSERT_TRUE(two);
  EXPECT_LT(*one, *two);
}

TEST_P(StorageContract, RefusesAnAppendThatGoesBack) {
  open();
  const auto first = append_batch(log(), 3);
  const auto back = parts_of(make_batch({2}, 1, {1000}));
  EXPECT_FALSE(log().append(std::span(&back, 1)));
  EXPECT_FALSE(log().append({}));
  EXPECT_EQ(log().bounds().end, Offset{3});
  EXPECT_EQ(read(everything_from({0})), joined({first}));
}

TEST_P(StorageContract, ReadsTheWholeBatchThatHoldsTheOffset) {
  open();
  append_batch(log(), 3);
  const auto second = append_batch(log(), 3);
  const auto third = append_batch(log(), 3);
  EXPECT_EQ(read(everything_from({4})), joined({second, third}));
  EXPECT_EQ(read(everything_from({8})), joined({third}));
}

TEST_P(StorageContract, ReadsNoBatchAtOrBeyondTheLimit) {
  open();
  const auto first = append_batch(log(), 3);
  const auto second = append_batch(log(), 3);
  append_batch(log(), 3);
  EXPECT_EQ(read({.from = {0}, .limit = {6}, .bytes_max = 10'000}), joined({first, second}));
  EXPECT_EQ(read({.from = {0}, .limit = {3}, .bytes_max = 10'000}), joined({first}));
  EXPECT_EQ(read({.from = {3}, .limit = {3}, .bytes_max = 10'000}), "");
  EXPECT_EQ(read({.from = {5}, .limit = {4}, .bytes_max = 10'000}), "");
}

TEST_P(StorageContract, ReadsAsManyBatchesAsFit) {
  open();
  const auto first = append_batch(log(), 1);
  const auto second = append_batch(log(), 1);
  append_batch(log(), 1);
  const auto two = first.size() + second.size();
  EXPECT_EQ(read({.from = {0}, .limit = {9}, .bytes_max = two}), joined({first, second}));
  EXPECT_EQ(read({.from = {0}, .limit = {9}, .bytes_max = two - 1}), joined({first}));
  EXPECT_EQ(read({.from = {0}, .limit = {9}, .bytes_max = 1}), joined({first}));
  EXPECT_EQ(read({.from = {0}, .limit = {9}, .bytes_max = 1, .at_least_one = false}), "");
}

TEST_P(StorageContract, RollsIntoSegmentsThatReadAsOneLog) {
  open();
  const auto first = append_batch(log(), 3);
  ASSERT_TRUE(log().roll());
  ASSERT_TRUE(log().roll());
  const auto second = append_batch(log(), 2, {2000});
  const auto segments = log().segments();
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].base, Offset{0});
  EXPECT_EQ(segments[0].next, Offset{3});
  EXPECT_EQ(segments[0].bytes, first.size());
  EXPECT_EQ(segments[0].max_timestamp, Timestamp{1000});
  EXPECT_FALSE(segments[0].active);
  EXPECT_EQ(segments[1].base, Offset{3});
  EXPECT_EQ(segments[1].next, Offset{5});
  EXPECT_EQ(segments[1].max_timestamp, Timestamp{2000});
  EXPECT_TRUE(segments[1].active);
  EXPECT_EQ(read(everything_from({0})), joined({first, second}));
  EXPECT_EQ(read(everything_from({4})), joined({second}));
}

TEST_P(StorageContract, RollsBySize) {
  open({.segment_bytes = 500});
  for (int at = 0; at < 20; ++at) append_batch(log(), 1, {1000}, 100);
  EXPECT_GT(log().segments().size(), 5u);
  for (const auto& segment : log().segments()) EXPECT_LE(segment.bytes, 500u);
}

TEST_P(StorageContract, FollowsSettingsThatChange) {
  open({.segment_bytes = 1 << 20});
  for (int at = 0; at < 10; ++at) append_batch(log(), 1, {1000}, 100);
  EXPECT_EQ(log().segments().size(), 1u);
  log().reconfigure({.segment_bytes = 500});
  for (int at = 0; at < 10; ++at) append_batch(log(), 1, {1000}, 100);
  const auto segments = log().segments().size();
  EXPECT_GT(segments, 2u);
  log().reconfigure({.segment_bytes = 1 << 20});
  for (int at = 0; at < 10; ++at) append_batch(log(), 1, {1000}, 100);
  EXPECT_EQ(log().segments().size(), segments);
}

TEST_P(StorageContract, CutsTheTailAtABatch) {
  open();
  const auto first = append_batch(log(), 3);
  append_batch(log(), 3);
  append_batch(log(), 3);
  EXPECT_FALSE(log().truncate_from({4}));
  ASSERT_TRUE(log().truncate_from({3}));
  EXPECT_EQ(log().bounds().end, Offset{3});
  EXPECT_EQ(read_error({4}), Errc::out_of_range);
  const auto other = append_batch(log(), 1, {5000});
  EXPECT_EQ(read(everything_from({0})), joined({first, other}));
}

TEST_P(StorageContract, CutsTheTailOverSegments) {
  open();
  const auto first = append_batch(log(), 3);
  append_batch(log(), 3);
  for (int at = 0; at < 3; ++at) {
    ASSERT_TRUE(log().roll());
    append_batch(log(), 2);
  }
  ASSERT_TRUE(log().truncate_from({3}));
  EXPECT_EQ(log().segments().size(), 1u);
  const auto other = append_batch(log(), 1);
  EXPECT_EQ(read(everything_from({0})), joined({first, other}));
  ASSERT_TRUE(log().truncate_from({0}));
  EXPECT_EQ(log().bounds().end, Offset{0});
  EXPECT_EQ(read(everything_from({0})), "");
}

TEST_P(StorageContract, TrimsWholeSegmentsAndMovesTheStart) {
  open();
  append_batch(log(), 3);
  ASSERT_TRUE(log().roll());
  const auto second = append_batch(log(), 3);
  ASSERT_TRUE(log().roll());
  const auto third = append_batch(log(), 3);
  ASSERT_TRUE(log().trim_before({4}));
  EXPECT_EQ(log().bounds().start, Offset{4});
  EXPECT_EQ(log().segments().front().base, Offset{3});
  EXPECT_EQ(read_error({3}), Errc::out_of_range);
  EXPECT_EQ(read(everything_from({4})), joined({second, third}));
  EXPECT_FALSE(log().trim_before({10}));
  ASSERT_TRUE(log().trim_before({9}));
  EXPECT_EQ(log().bounds().start, log().bounds().end);
  EXPECT_EQ(read(everything_from({9})), "");
}

TEST_P(StorageContract, BeginsAnewWhereToldTo) {
  open();
  append_batch(log(), 3);
  ASSERT_TRUE(log().reset_to({100}));
  EXPECT_EQ(log().bounds().start, Offset{100});
  EXPECT_EQ(log().bounds().end, Offset{100});
  EXPECT_EQ(read_error({0}), Errc::out_of_range);
  const auto batch = append_batch(log(), 3);
  EXPECT_EQ(read(everything_from({100})), joined({batch}));
  ASSERT_TRUE(log().reset_to({5}));
  EXPECT_EQ(read(everything_from({5})), "");
}

TEST_P(StorageContract, KeepsWhatAReaderHolds) {
  open();
  const auto first = append_batch(log(), 3);
  ASSERT_TRUE(log().roll());
  const auto second = append_batch(log(), 3);
  const auto third = append_batch(log(), 3);
  const auto held = subject_->run(log().read(everything_from({0})));
  ASSERT_TRUE(held) << to_string(held.error());
  ASSERT_TRUE(log().truncate_from({6}));
  append_batch(log(), 5, {9000}, 100);
  ASSERT_TRUE(log().trim_before({4}));
  ASSERT_TRUE(log().reset_to({50}));
  close();
  ASSERT_TRUE(subject_->run(storage().remove(orders)));
  const auto bytes = held->flatten();
  ASSERT_TRUE(bytes) << to_string(bytes.error());
  EXPECT_EQ(bytes->text(), joined({first, second, third}));
}

TEST_P(StorageContract, FindsTheFirstBatchOfATime) {
  open();
  append_batch(log(), 2, {1000});
  append_batch(log(), 2, {3000});
  append_batch(log(), 2, {2000});
  ASSERT_TRUE(log().roll());
  append_batch(log(), 2, {5000});
  EXPECT_EQ(batch_at(0), Offset{0});
  EXPECT_EQ(batch_at(1000), Offset{0});
  EXPECT_EQ(batch_at(1001), Offset{2});
  EXPECT_EQ(batch_at(3000), Offset{2});
  EXPECT_EQ(batch_at(3001), Offset{6});
  EXPECT_EQ(batch_at(5001), Offset{-1});
  ASSERT_TRUE(log().trim_before({3}));
  EXPECT_EQ(batch_at(0), Offset{3});
}

TEST_P(StorageContract, FlushMovesTheRecoveryPoint) {
  open();
  append_batch(log(), 3);
  ASSERT_TRUE(subject_->run(log().flush(log().bounds().end)));
  EXPECT_EQ(log().bounds().recovery_point, Offset{3});
  ASSERT_TRUE(log().truncate_from({0}));
  EXPECT_EQ(log().bounds().recovery_point, Offset{0});
}

TEST_P(StorageContract, KeepsTheNewestFewBesideTheLog) {
  open();
  EXPECT_EQ(aux(AuxKind::producer_snapshot), "");
  for (const std::int64_t at : {10, 20, 30, 40}) put_aux(AuxKind::producer_snapshot, at, "p");
  EXPECT_EQ(aux(AuxKind::producer_snapshot), "20=p 30=p 40=p");
  put_aux(AuxKind::producer_snapshot, 30, "q");
  put_aux(AuxKind::producer_snapshot, 20, "");
  EXPECT_EQ(aux(AuxKind::producer_snapshot), "30=q 40=p");
  put_aux(AuxKind::aggregate_snapshot, 7, "state");
  put_aux(AuxKind::leader_epochs, 0, "epochs");
  put_aux(AuxKind::leader_epochs, 0, "more epochs");
  put_aux(AuxKind::aborted_transactions, 0, "aborted");
  EXPECT_EQ(aux(AuxKind::aggregate_snapshot), "7=state");
  EXPECT_EQ(aux(AuxKind::leader_epochs), "0=more epochs");
  EXPECT_EQ(aux(AuxKind::aborted_transactions), "0=aborted");
}

TEST_P(StorageContract, AbortedTransactionsGoWithTheirSegment) {
  open();
  for (const std::int64_t base : {0, 3, 6}) {
    append_batch(log(), 3);
    put_aux(AuxKind::aborted_transactions, base, "rows");
    if (base < 6) ASSERT_TRUE(log().roll());
  }
  EXPECT_EQ(aux(AuxKind::aborted_transactions), "0=rows 3=rows 6=rows");
  ASSERT_TRUE(log().trim_before({3}));
  EXPECT_EQ(aux(AuxKind::aborted_transactions), "3=rows 6=rows");
  ASSERT_TRUE(log().truncate_from({6}));
  ASSERT_TRUE(log().truncate_from({3}));
  put_aux(AuxKind::aborted_transactions, 3, "");
  EXPECT_EQ(aux(AuxKind::aborted_transactions), "");
}

TEST_P(StorageContract, TellsWhoseTheDirectoryIs) {
  EXPECT_EQ(subject_->run(storage().owner())->cluster_id, "");
  ASSERT_TRUE(subject_->run(storage().set_owner({"a-cluster", 7})));
  const auto owner = subject_->run(storage().owner());
  EXPECT_EQ(owner->cluster_id, "a-cluster");
  EXPECT_EQ(owner->broker_id, 7);
  ASSERT_TRUE(subject_->run(storage().set_owner({"a-cluster", 7})));
  EXPECT_EQ(subject_->run(storage().set_owner({"another", 7})).error().code, Errc::conflict);
  EXPECT_EQ(subject_->run(storage().set_owner({"a-cluster", 8})).error().code, Errc::conflict);
}

TEST_P(StorageContract, OpensWhatWasClosed) {
  open();
  const auto first = append_batch(log(), 3);
  ASSERT_TRUE(log().roll());
  const auto second = append_batch(log(), 3);
  put_aux(AuxKind::producer_snapshot, 6, "p");
  EXPECT_EQ(subject_->run(storage().open(orders, {})).error().code, Errc::conflict);
  close();
  const auto opened = open();
  EXPECT_FALSE(opened.created);
  EXPECT_EQ(opened.bytes_cut, 0u);
  EXPECT_EQ(log().bounds().end, Offset{6});
  EXPECT_EQ(log().segments().size(), 2u);
  EXPECT_EQ(aux(AuxKind::producer_snapshot), "6=p");
  EXPECT_EQ(read(everything_from({0})), joined({first, second}));
  const auto third = append_batch(log(), 1);
  EXPECT_EQ(read(everything_from({0})), joined({first, second, third}));
}

TEST_P(StorageContract, KeepsDataOverARestart) {
  if (!GetParam().survives_restart) return;
  open({.segment_bytes = 400, .index_interval_bytes = 100});
  std::string written;
  for (int at = 0; at < 20; ++at) {
    written += append_batch(log(), 2, {1000 + at}, 40).text();
  }
  ASSERT_TRUE(log().trim_before({7}));
  const auto kept = read(everything_from({7}));
  ASSERT_TRUE(written.ends_with(kept));
  close();
  const std::vector<PartitionOffset> starts{{orders, {7}}};
  ASSERT_TRUE(subject_->run(storage().checkpoint(CheckpointKind::log_start, starts)));
  ASSERT_TRUE(subject_->run(storage().close()));
  subject_->restart();
  ASSERT_TRUE(subject_->run(storage().lock()));
  const auto opened = open(options_);
  EXPECT_EQ(opened.bytes_cut, 0u);
  EXPECT_EQ(log().bounds().start, Offset{7});
  EXPECT_EQ(log().bounds().end, Offset{40});
  EXPECT_EQ(log().bounds().recovery_point, Offset{40});
  EXPECT_EQ(read(everything_from({7})), kept);
  EXPECT_EQ(batch_at(1010), Offset{20});
}

TEST_P(StorageContract, ListsAndRemovesPartitions) {
  const Uuid id{{1, 2, 3}};
  open({.topic_id = id});
  append_batch(log(), 3);
  EXPECT_EQ(subject_->run(storage().remove(orders)).error().code, Errc::conflict);
  close();
  EXPECT_EQ(subject_->run(storage().open(orders, {.topic_id = {{9}}})).error().code,
            Errc::conflict);
  auto found = subject_->run(storage().list());
  ASSERT_TRUE(found) << to_string(found.error());
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().partition, orders);
  EXPECT_EQ(found->front().topic_id, id);

  ASSERT_TRUE(subject_->run(storage().remove(orders)));
  EXPECT_FALSE(subject_->run(storage().remove(orders)));
  EXPECT_EQ(subject_->run(storage().list())->size(), 0u);
  EXPECT_TRUE(open({.topic_id = {{9}}}).created);
  EXPECT_EQ(log().bounds().end, Offset{0});
}

TEST_P(StorageContract, MergesCheckpoints) {
  open();
  close();
  const TopicPartition payments{"payments-eu", 7};
  const auto put = [&](CheckpointKind kind, std::vector<PartitionOffset> offsets) {
    ASSERT_TRUE(subject_->run(storage().checkpoint(kind, std::move(offsets))));
  };
  const auto all = [&](CheckpointKind kind) {
    std::string text;
    for (const auto& entry : *subject_->run(storage().checkpointed(kind))) {
      text += to_string(entry.partition) + "=" + std::to_string(entry.offset.value) + " ";
    }
    return text;
  };
  put(CheckpointKind::high_watermark, {{orders, {5}}, {payments, {9}}});
  put(CheckpointKind::high_watermark, {{orders, {6}}});
  put(CheckpointKind::log_start, {{orders, {1}}});
  EXPECT_EQ(all(CheckpointKind::high_watermark), "orders-0=6 payments-eu-7=9 ");
  EXPECT_EQ(all(CheckpointKind::log_start), "orders-0=1 ");
  ASSERT_TRUE(subject_->run(storage().remove(orders)));
  EXPECT_EQ(all(CheckpointKind::high_watermark), "payments-eu-7=9 ");
  EXPECT_EQ(all(CheckpointKind::log_start), "");
}

// ---- what compaction needs ----

TEST_P(StorageContract, TakesOffsetsWithGaps) {
  open();
  const auto first = make_batch({5}, 2, {1000});
  const auto second = make_batch({20}, 1, {2000});
  for (const auto& batch : {first, second}) {
    const auto parts = parts_of(batch);
    ASSERT_TRUE(log().append(std::span(&parts, 1)));
  }
  EXPECT_EQ(log().bounds().start, Offset{0});
  EXPECT_EQ(log().bounds().end, Offset{21});
  EXPECT_EQ(read(everything_from({0})), joined({first, second}));
  EXPECT_EQ(read(everything_from({7})), joined({second}));
  EXPECT_EQ(read({.from = {7}, .limit = {20}, .bytes_max = 10'000}), "");
  EXPECT_EQ(batch_at(1500), Offset{20});
  ASSERT_TRUE(log().truncate_from({12}));
  EXPECT_EQ(log().bounds().end, Offset{12});
  EXPECT_EQ(read(everything_from({7})), "");
  close();
  open();
  EXPECT_EQ(log().bounds().end, Offset{12});
  const auto third = append_batch(log(), 2);
  EXPECT_EQ(read(everything_from({0})), joined({first, third}));
}

TEST_P(StorageContract, WritesSegmentsAnewAsOne) {
  open();
  const auto batches = fill_four_segments();
  for (const std::int64_t base : {0, 6, 12}) {
    put_aux(AuxKind::aborted_transactions, base, std::to_string(base));
  }
  auto anew = rewrite({6}, {18});
  ASSERT_TRUE(append_to(*anew, {batches[2]}));
  ASSERT_TRUE(append_to(*anew, {batches[4], batches[5]}));
  const auto bytes = batches[2].size() + batches[4].size() + batches[5].size();
  EXPECT_EQ(anew->bytes(), bytes);
  EXPECT_EQ(log().segments().size(), 4u);
  ASSERT_EQ(commit(*anew), Errc::ok);
  anew.reset();
  const auto kept =
      joined({batches[0], batches[1], batches[2], batches[4], batches[5], batches[6], batches[7]});
  EXPECT_EQ(read(everything_from({0})), kept);
  EXPECT_EQ(read(everything_from({9})), joined({batches[4], batches[5], batches[6], batches[7]}));
  EXPECT_EQ(log().bounds().end, Offset{24});
  EXPECT_EQ(log().bounds().bytes, kept.size());
  EXPECT_GE(log().bounds().recovery_point, Offset{18});
  const auto segments = log().segments();
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(segments[1].base, Offset{6});
  EXPECT_EQ(segments[1].next, Offset{18});
  EXPECT_EQ(segments[1].bytes, bytes);
  EXPECT_EQ(segments[1].max_timestamp, Timestamp{1005});
  EXPECT_FALSE(segments[1].active);
  EXPECT_EQ(batch_at(1003), Offset{12});
  EXPECT_EQ(aux(AuxKind::aborted_transactions), "0=0 6=612");
  close();
  open();
  EXPECT_EQ(read(everything_from({0})), kept);
  EXPECT_EQ(log().segments().size(), 3u);
  EXPECT_EQ(aux(AuxKind::aborted_transactions), "0=0 6=612");
}

TEST_P(StorageContract, WritesASegmentAnewAgainAndAgain) {
  open();
  const auto batches = fill_four_segments();
  auto anew = rewrite({0}, {6});
  ASSERT_TRUE(append_to(*anew, {batches[1]}));
  ASSERT_EQ(commit(*anew), Errc::ok);
  anew = nullptr;
  anew = rewrite({6}, {12});
  ASSERT_EQ(commit(*anew), Errc::ok);
  anew = nullptr;
  EXPECT_EQ(log().segments()[1].bytes, 0u);
  EXPECT_EQ(read(everything_from({6})), joined({batches[4], batches[5], batches[6], batches[7]}));
  anew = rewrite({0}, {18});
  ASSERT_TRUE(append_to(*anew, {batches[1], batches[4]}));
  ASSERT_EQ(commit(*anew), Errc::ok);
  anew = nullptr;
  EXPECT_EQ(log().segments().size(), 2u);
  EXPECT_EQ(read(everything_from({0})), joined({batches[1], batches[4], batches[6], batches[7]}));
  ASSERT_TRUE(log().trim_before({2}));
  EXPECT_EQ(read(everything_from({2})), joined({batches[1], batches[4], batches[6], batches[7]}));
  ASSERT_TRUE(log().truncate_from({12}));
  EXPECT_EQ(read(everything_from({2})), joined({batches[1]}));
}

TEST_P(StorageContract, WritesAnewWhatIsAskedForAndNothingElse) {
  open();
  const auto batches = fill_four_segments();
  EXPECT_EQ(log().rewrite({6}, {6}).error().code, Errc::invalid_argument);
  EXPECT_EQ(log().rewrite({3}, {12}).error().code, Errc::invalid_argument);
  EXPECT_EQ(log().rewrite({6}, {15}).error().code, Errc::invalid_argument);
  EXPECT_EQ(log().rewrite({18}, {24}).error().code, Errc::invalid_argument);
  auto anew = rewrite({6}, {12});
  EXPECT_EQ(log().rewrite({0}, {6}).error().code, Errc::conflict);
  EXPECT_EQ(append_to(*anew, {batches[1]}).error().code, Errc::out_of_range);
  EXPECT_EQ(append_to(*anew, {batches[4]}).error().code, Errc::out_of_range);
  EXPECT_EQ(append_to(*anew, {batches[3], batches[2]}).error().code, Errc::out_of_range);
  anew.reset();
  EXPECT_TRUE(log().rewrite({0}, {6}));
  // A segment spans no more offsets than its index can tell apart.
  ASSERT_TRUE(log().reset_to({0}));
  append_batch(log(), 1);
  ASSERT_TRUE(log().roll());
  const auto far = parts_of(make_batch({std::int64_t{1} << 32}, 1, {1000}));
  const auto appended = log().append(std::span(&far, 1));
  if (!appended) return;
  ASSERT_TRUE(log().roll());
  EXPECT_EQ(log().rewrite({0}, far.last_offset + 1).error().code, Errc::out_of_range);
}

TEST_P(StorageContract, WritesNothingAnewThatWasCutMeanwhile) {
  const std::function<Result<>()> cuts[] = {
      [&] { return log().truncate_from({15}); },
      [&] { return log().trim_before({12}); },
      [&] { return log().reset_to({50}); },
  };
  for (const auto& cut : cuts) {
    open();
    const auto batches = fill_four_segments();
    auto anew = rewrite({6}, {18});
    ASSERT_TRUE(append_to(*anew, {batches[2]}));
    ASSERT_TRUE(cut());
    const auto bounds = log().bounds();
    const auto content = read(everything_from(bounds.start));
    EXPECT_EQ(commit(*anew), Errc::conflict);
    anew.reset();
    EXPECT_EQ(read(everything_from(bounds.start)), content);
    EXPECT_EQ(log().bounds().end, bounds.end);
    close();
    ASSERT_TRUE(subject_->run(storage().remove(orders)));
  }
  open();
}

TEST_P(StorageContract, GoesOnWhileSegmentsAreWrittenAnew) {
  open();
  const auto batches = fill_four_segments();
  auto anew = rewrite({6}, {12});
  const auto held = subject_->run(log().read(everything_from({0})));
  ASSERT_TRUE(held);
  ASSERT_TRUE(append_to(*anew, {batches[3]}));
  ASSERT_TRUE(log().truncate_from({21}));
  const auto more = append_batch(log(), 1);
  ASSERT_TRUE(log().roll());
  ASSERT_TRUE(subject_->run(log().flush(log().bounds().end)));
  ASSERT_TRUE(log().trim_before({6}));
  EXPECT_EQ(commit(*anew), Errc::ok);
  anew.reset();
  const auto kept = joined({batches[3], batches[4], batches[5], batches[6], more});
  EXPECT_EQ(read(everything_from({6})), kept);
  const auto bytes = held->flatten();
  ASSERT_TRUE(bytes) << to_string(bytes.error());
  std::string whole;
  for (const auto& batch : batches) whole += batch.text();
  EXPECT_EQ(bytes->text(), whole);
}

TEST_P(StorageContract, ARewriteEndsBeforeItsLogIsOpenedAgain) {
  open();
  fill_four_segments();
  auto anew = rewrite({6}, {12});
  close();
  EXPECT_EQ(commit(*anew), Errc::closed);
  EXPECT_EQ(subject_->run(storage().open(orders, {})).error().code, Errc::conflict);
  EXPECT_EQ(subject_->run(storage().remove(orders)).error().code, Errc::conflict);
  anew.reset();
  open();
}

}  // namespace millrace::testing
