#include "kernel/cli/partition_reader.h"

#include <gtest/gtest.h>

#include <millrace/testing/storage_subject.h>

namespace millrace::kernel::cli {
namespace {

constexpr std::int32_t records_of_batch = 3;

Buffer batches(std::int64_t base, int count) {
  std::string bytes;
  for (int at = 0; at < count; ++at) {
    const Offset offset{base + std::int64_t{at} * records_of_batch};
    bytes += testing::make_batch(offset, records_of_batch, {1000}, 40).text();
  }
  return Buffer::copy_of(bytes);
}

// Reads what a broker has answered for partition 2; nobody is asked.
class FetchedTest : public ::testing::Test {
 protected:
  Result<> open(Buffer records, ErrorCode code = ErrorCode::none) {
    kafka::FetchResponse answer;
    auto& fetched = answer.responses.emplace_back().partitions.emplace_back();
    fetched.partition_index = 2;
    fetched.error_code = static_cast<std::int16_t>(code);
    fetched.records.emplace();
    fetched.records->add(std::move(records));
    return open_fetched("orders", answer, {}, positions_,
                        [this](std::int32_t partition, const RecordView& record) {
                          EXPECT_EQ(partition, 2);
                          seen_.push_back(record.offset.value);
                          return seen_.size() < enough_;
                        });
  }
  std::int64_t next() const { return positions_.front().next.value; }

  std::vector<ReadPosition> positions_{{.partition = {.partition = 2}, .next = Offset{10}}};
  std::vector<std::int64_t> seen_;
  std::size_t enough_ = 1000;
};

TEST_F(FetchedTest, ReadingBeginsWithinABatch) {
  ASSERT_TRUE(open(batches(9, 2)));
  EXPECT_EQ(seen_, (std::vector<std::int64_t>{10, 11, 12, 13, 14}));
  EXPECT_EQ(next(), 15);
}

TEST_F(FetchedTest, ABatchThatIsCutShortComesAgain) {
  const auto two = batches(10, 2);
  ASSERT_TRUE(open(two.slice(0, two.size() - 1)));
  EXPECT_EQ(seen_.size(), 3u);
  EXPECT_EQ(next(), 13);
}

TEST_F(FetchedTest, WhoHasEnoughGoesOnBehindTheLastOne) {
  enough_ = 2;
  ASSERT_TRUE(open(batches(10, 2)));
  EXPECT_EQ(seen_, (std::vector<std::int64_t>{10, 11}));
  EXPECT_EQ(next(), 12);
}

TEST_F(FetchedTest, AWrongChecksumIsNotPassedOver) {
  auto bytes = std::string(batches(10, 2).text());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  const auto opened = open(Buffer::copy_of(bytes));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
  EXPECT_NE(opened.error().detail.find("orders-2: the batch of offsets 13 to 15"),
            std::string::npos)
      << opened.error().detail;
  EXPECT_EQ(next(), 13);
}

TEST_F(FetchedTest, AnErrorNamesThePlace) {
  const auto opened = open({}, ErrorCode::offset_out_of_range);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().detail.find("orders-2 at offset 10"), std::string::npos)
      << opened.error().detail;
}

TEST_F(FetchedTest, WhatWasNotAskedForIsRefused) {
  positions_.front().partition.partition = 1;
  const auto opened = open(batches(10, 1));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
}

}  // namespace
}  // namespace millrace::kernel::cli
