// What a log keeps in memory of its newest batches, and for whom.
#include "filelog_subject.h"

#include <algorithm>
#include <variant>

namespace millrace::filelog {
namespace {

using testing::append_batch;
using testing::everything_from;
using testing::joined;
using testing::make_batch;
using testing::parts_of;

class RecentBatchesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    subject_.lock();
    auto opened = subject_.open();
    ASSERT_TRUE(opened) << to_string(opened.error());
    log_ = std::move(opened->log);
  }
  void TearDown() override { subject_.close(log_); }

  Payload read(ReadRequest request) {
    auto found = subject_.run(log_->read(request));
    EXPECT_TRUE(found) << to_string(found.error());
    return found ? *std::move(found) : Payload();
  }
  Payload read_from(Offset from) { return read(everything_from(from)); }
  static bool from_memory(const Payload& found) {
    return std::ranges::all_of(found.parts(), [](const Payload::Part& part) {
      return std::holds_alternative<Buffer>(part);
    });
  }
  static std::string text(const Payload& found) { return std::string(found.flatten()->text()); }

  FilelogSubject subject_;
  std::unique_ptr<PartitionLog> log_;
};

TEST_F(RecentBatchesTest, WhoReadsEachAsItComesIsAnsweredFromMemory) {
  const auto first = append_batch(*log_, 3);
  const auto found = read_from({0});
  EXPECT_FALSE(from_memory(found));
  EXPECT_EQ(text(found), first.text());
  const auto second = append_batch(*log_, 2);
  const auto third = append_batch(*log_, 2);
  const auto next = read_from({4});
  EXPECT_TRUE(from_memory(next));
  EXPECT_EQ(text(next), joined({second, third}));
  const auto all = read_from({0});
  EXPECT_FALSE(from_memory(all));
  EXPECT_EQ(text(all), joined({first, second, third}));
}

TEST_F(RecentBatchesTest, LimitsHoldForThemToo) {
  append_batch(*log_, 1);
  read_from({0});
  const auto second = append_batch(*log_, 2);
  append_batch(*log_, 2);
  const auto below = read({.from = {1}, .limit = {3}, .bytes_max = 100'000});
  EXPECT_TRUE(from_memory(below));
  EXPECT_EQ(text(below), second.text());
  EXPECT_TRUE(read({.from = {2}, .limit = {2}, .bytes_max = 100'000}).empty());  // within a batch
  ReadRequest request{.from = {1}, .limit = {5}, .bytes_max = second.size(), .at_least_one = false};
  EXPECT_EQ(text(read(request)), second.text());
  --request.bytes_max;
  EXPECT_TRUE(read(request).empty());
  request.at_least_one = true;
  EXPECT_EQ(text(read(request)), second.text());
}

TEST_F(RecentBatchesTest, WhatNobodyReadsIsNotKept) {
  append_batch(*log_, 1);
  append_batch(*log_, 1);
  EXPECT_FALSE(from_memory(read_from({1})));
  for (unsigned at = 0; at <= RecentBatches::unread_max; ++at) append_batch(*log_, 1);
  const auto newest = Offset{log_->bounds().end.value - 1};
  EXPECT_FALSE(from_memory(read_from(newest)));
}

TEST_F(RecentBatchesTest, LargeBatchesStayFiles) {
  append_batch(*log_, 1);
  read_from({0});
  append_batch(*log_, 1, {1000}, RecentBatches::batch_bytes_max);
  EXPECT_FALSE(from_memory(read_from({1})));
}

TEST_F(RecentBatchesTest, OfOneLogTheOldestGo) {
  append_batch(*log_, 1);
  read_from({0});
  const auto count = RecentBatches::bytes_max / 1000 + 2;
  for (std::size_t at = 0; at < count; ++at) append_batch(*log_, 1, {1000}, 1000);
  EXPECT_FALSE(from_memory(read_from({1})));
  EXPECT_TRUE(from_memory(read_from({static_cast<std::int64_t>(count) - 2})));
}

TEST_F(RecentBatchesTest, NothingOfACutTailIsLeft) {
  append_batch(*log_, 1);
  read_from({0});
  append_batch(*log_, 1);
  append_batch(*log_, 1);
  ASSERT_TRUE(log_->truncate_from({1}));
  const auto anew = append_batch(*log_, 1, {2000});
  EXPECT_EQ(text(read_from({1})), anew.text());
  ASSERT_TRUE(log_->reset_to({50}));
  EXPECT_TRUE(read_from({50}).empty());
}

TEST(RecentMemoryTest, LogsAtRestLetGoFirst) {
  constexpr std::size_t logs_max = 10;
  const auto batch = make_batch({0}, 1, {1000}, 1000);
  RecentMemory memory(logs_max * batch.size());
  std::vector<std::unique_ptr<RecentBatches>> logs;
  const auto parts = parts_of(batch);
  for (std::size_t at = 0; at < 2 * logs_max; ++at) {
    auto& log = *logs.emplace_back(std::make_unique<RecentBatches>(memory));
    log.wanted();
    log.add({0}, std::span(&parts, 1));
    EXPECT_LE(memory.bytes(), logs_max * batch.size());
  }
  for (std::size_t at = 0; at < logs.size(); ++at) {
    EXPECT_EQ(logs[at]->read(everything_from({0})).has_value(), at >= logs_max) << at;
  }
  logs.clear();
  EXPECT_EQ(memory.bytes(), 0u);
}

}  // namespace
}  // namespace millrace::filelog
