#include <millrace/filelog/index.h>

#include <string>

#include <gtest/gtest.h>

namespace millrace::filelog {
namespace {

Bytes bytes_of(const std::vector<std::byte>& bytes) { return bytes; }

OffsetIndex three_rows() {
  OffsetIndex index;
  index.add({9, 4100});
  index.add({19, 8300});
  index.add({29, 12500});
  return index;
}

TEST(OffsetIndexTest, LeadsToTheLastRowThatIsNotBeyond) {
  const auto index = three_rows();
  EXPECT_FALSE(index.find(8));
  EXPECT_EQ(index.find(9)->position, 4100);
  EXPECT_EQ(index.find(28)->position, 8300);
  EXPECT_EQ(index.find(1'000'000'000'000)->position, 12500);
}

TEST(OffsetIndexTest, LeadsToARowByPositionAndLimit) {
  const auto index = three_rows();
  EXPECT_FALSE(index.find_by_position(4099, 100));
  EXPECT_EQ(index.find_by_position(4100, 100)->offset, 9);
  EXPECT_EQ(index.find_by_position(99999, 29)->offset, 19);
  EXPECT_FALSE(index.find_by_position(99999, 9));
}

// A broker of 2.8 wrote {19, 6443} for an append of batches 4 to 19; a walk from there finds them
// one by one.
TEST(OffsetIndexTest, KeepsRisingBehindARowForManyBatches) {
  OffsetIndex index;
  index.add({19, 6443});
  index.add({11, 12469});
  index.add({19, 19052});
  index.add({25, 20000});
  EXPECT_EQ(index.rows().size(), 2u);
  EXPECT_EQ(index.rows().back().offset, 25);
}

TEST(OffsetIndexTest, SurvivesItsFile) {
  const auto index = three_rows();
  const auto parsed = OffsetIndex::parse(bytes_of(index.encode(0)), 20000);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->encode(0), index.encode(0));
  EXPECT_EQ(index.encode(2).size(), OffsetIndex::row_bytes);
}

TEST(OffsetIndexTest, IgnoresTheZerosOfAPreallocatedFile) {
  auto bytes = three_rows().encode(0);
  bytes.resize(bytes.size() + 100 * OffsetIndex::row_bytes);
  const auto parsed = OffsetIndex::parse(bytes, 20000);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->rows().size(), 3u);
  EXPECT_EQ(OffsetIndex::parse(std::vector<std::byte>(800), 20000)->rows().size(), 0u);
}

TEST(OffsetIndexTest, RefusesRowsThatCannotBe) {
  auto bytes = three_rows().encode(0);
  EXPECT_FALSE(OffsetIndex::parse(bytes, 12500)) << "points behind the log";
  EXPECT_FALSE(OffsetIndex::parse(Bytes(bytes).first(bytes.size() - 1), 20000)) << "cut in a row";
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 8);
  EXPECT_FALSE(OffsetIndex::parse(bytes, 20000)) << "does not rise";
}

TEST(OffsetIndexTest, ForgetsRowsBehindAnOffset) {
  auto index = three_rows();
  index.keep_through(19);
  EXPECT_EQ(index.rows().size(), 2u);
  index.keep_through(-1);
  EXPECT_EQ(index.rows().size(), 0u);
}

TEST(TimeIndexTest, TakesOnlyRowsThatBringSomethingNewer) {
  TimeIndex index;
  index.add({-1, 3});
  index.add({1000, 5});
  index.add({1000, 8});
  index.add({900, 9});
  index.add({2000, 12});
  ASSERT_EQ(index.rows().size(), 2u);
  EXPECT_EQ(index.rows().back().offset, 12);
  EXPECT_FALSE(index.find_older(1000));
  EXPECT_EQ(index.find_older(1001)->offset, 5);
  EXPECT_EQ(index.find_older(INT64_MAX)->offset, 12);
}

TEST(TimeIndexTest, SurvivesItsFileAndRefusesWhatDoesNotRise) {
  TimeIndex index;
  index.add({1000, 5});
  index.add({2000, 12});
  auto bytes = index.encode(0);
  const auto parsed = TimeIndex::parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->encode(0), bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + 12, bytes.begin() + 12);
  EXPECT_FALSE(TimeIndex::parse(bytes));
}

}  // namespace
}  // namespace millrace::filelog
