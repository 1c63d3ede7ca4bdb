#include "kernel/partition/scrub.h"

#include <gtest/gtest.h>

#include <millrace/bytes.h>
#include <millrace/testing/sim_environment.h>
#include <millrace/testing/storage_subject.h>

namespace millrace::kernel {
namespace {

constexpr std::int32_t records_of_batch = 4;
constexpr int batches = 60;
const std::string path = "/data/orders-0/00000000000000000000.log";

// A segment of sixty batches, on the disk.
class ScrubTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string content;
    for (int at = 0; at < batches; ++at) {
      const Offset base{std::int64_t{at} * records_of_batch};
      content += testing::make_batch(base, records_of_batch, {1000}, 5000).text();
    }
    bytes_ = content.size();
    ASSERT_TRUE(disk_.make_folders("/data/orders-0"));
    auto opened = disk_.open(path, OpenMode::create);
    ASSERT_TRUE(opened);
    file_ = *opened;
    const auto part = as_bytes(content);
    ASSERT_TRUE(file_->write_at(0, std::span(&part, 1)));
    ASSERT_TRUE(file_->sync());
  }
  std::uint64_t position_of(int batch) const {
    return bytes_ / batches * static_cast<std::uint64_t>(batch);
  }
  /// All of it, in steps of so many bytes.
  std::vector<CorruptBatch> scrub(std::uint64_t step_bytes) {
    std::vector<CorruptBatch> corrupt;
    std::uint64_t bytes = 0;
    steps_ = 0;
    for (std::uint64_t at = 0; at < bytes_; ++steps_) {
      const auto step = scrub_step(*file_, at, bytes_, step_bytes);
      EXPECT_TRUE(step) << step.error().detail;
      if (!step) break;
      EXPECT_GT(step->next, at);
      corrupt.insert(corrupt.end(), step->corrupt.begin(), step->corrupt.end());
      bytes += step->bytes;
      at = step->next;
    }
    EXPECT_EQ(bytes, bytes_);
    return corrupt;
  }

  testing::SimWorld world_{5};
  testing::SimDisk& disk_ = world_.add_node("b1").files();
  std::shared_ptr<File> file_;
  std::uint64_t bytes_ = 0;
  int steps_ = 0;
};

TEST_F(ScrubTest, NothingIsSaidOfWhatIsSound) {
  EXPECT_TRUE(scrub(bytes_).empty());
  EXPECT_EQ(steps_, 1);
  EXPECT_TRUE(scrub(100'000).empty());
  EXPECT_GT(steps_, 8);
}

TEST_F(ScrubTest, EachCorruptBatchIsToldWithItsPlace) {
  ASSERT_TRUE(disk_.flip_bit(path, position_of(7) + 500));
  ASSERT_TRUE(disk_.flip_bit(path, position_of(59) + 5000));
  const auto corrupt = scrub(200'000);
  ASSERT_EQ(corrupt.size(), 2U);
  EXPECT_EQ(corrupt[0].position, position_of(7));
  EXPECT_EQ(corrupt[0].end, position_of(8));
  EXPECT_EQ(corrupt[0].from, Offset{28});
  EXPECT_EQ(corrupt[0].to, Offset{31});
  EXPECT_NE(corrupt[0].what.find("checksum"), std::string::npos) << corrupt[0].what;
  EXPECT_EQ(corrupt[1].end, bytes_);
}

TEST_F(ScrubTest, WhereALengthIsWrongTheRestCounts) {
  constexpr std::uint64_t length_at = 8;  // its highest byte
  constexpr std::uint64_t magic_at = 16;
  ASSERT_TRUE(disk_.flip_bit(path, position_of(30) + length_at));
  ASSERT_TRUE(disk_.flip_bit(path, position_of(30) + magic_at));
  const auto corrupt = scrub(bytes_);
  ASSERT_EQ(corrupt.size(), 1U);
  EXPECT_EQ(corrupt[0].position, position_of(30));
  EXPECT_EQ(corrupt[0].end, bytes_);
}

TEST_F(ScrubTest, AFileThatIsTooShortIsTold) {
  ASSERT_TRUE(file_->truncate(position_of(40) + 1000));
  const auto corrupt = scrub(bytes_);
  ASSERT_EQ(corrupt.size(), 1U);
  EXPECT_EQ(corrupt[0].position, position_of(40));
  EXPECT_EQ(corrupt[0].end, bytes_);
  ASSERT_TRUE(file_->truncate(position_of(40)));
  EXPECT_EQ(scrub(100'000).size(), 1U);
}

// A message as the table of the format says.
std::string message(int magic, std::int64_t offset, std::size_t value_bytes) {
  const auto be = [](auto number) {
    std::string text(sizeof number, '\0');
    store_be(reinterpret_cast<std::byte*>(text.data()), number);
    return text;
  };
  auto body = be(static_cast<std::int8_t>(magic)) + be(std::int8_t{0});
  if (magic == 1) body += be(std::int64_t{1000});
  body += be(std::int32_t{-1}) + be(static_cast<std::int32_t>(value_bytes));
  body += std::string(value_bytes, '.');
  body = be(crc32(as_bytes(body))) + body;
  return be(offset) + be(static_cast<std::int32_t>(body.size())) + body;
}

TEST_F(ScrubTest, OldFormatsHaveTheirOwnChecksums) {
  std::string content;
  for (int at = 0; at < 10; ++at) content += message(at % 2, at, 10'000);
  const auto part = as_bytes(content);
  ASSERT_TRUE(file_->truncate(0));
  ASSERT_TRUE(file_->write_at(0, std::span(&part, 1)));
  bytes_ = content.size();
  EXPECT_TRUE(scrub(30'000).empty());
  ASSERT_TRUE(disk_.flip_bit(path, bytes_ / 2 + 5000));
  ASSERT_TRUE(disk_.flip_bit(path, 5000));
  const auto corrupt = scrub(30'000);
  ASSERT_EQ(corrupt.size(), 2U);
  EXPECT_EQ(corrupt[0].from, Offset{0});
  EXPECT_EQ(corrupt[1].from, Offset{5});
}

TEST_F(ScrubTest, WhatWasNotInMemoryIsNotAfterwards) {
  EXPECT_TRUE(scrub(100'000).empty());
  EXPECT_EQ(disk_.cold_bytes(path), 0U) << "what others use stays";
  ASSERT_TRUE(disk_.forget_pages(path));
  const auto cold = disk_.cold_bytes(path);
  ASSERT_GE(cold, bytes_);
  EXPECT_TRUE(scrub(300'000).empty());
  EXPECT_EQ(disk_.cold_bytes(path), cold);
}

}  // namespace
}  // namespace millrace::kernel
