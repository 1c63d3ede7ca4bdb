#include "plugins/coordination/standalone/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/testing/sim_environment.h>

namespace millrace::standalone {
namespace {

using millrace::testing::SimDisk;
using millrace::testing::SimEnvironment;
using millrace::testing::SimWorld;
using ::testing::HasSubstr;

const std::string path = "/data/journal";

std::vector<Change> set(std::string key, std::string value, Version version = 0) {
  return {{std::move(key), Versioned{std::move(value), version}}};
}

class JournalTest : public ::testing::Test {
 protected:
  /// Opens the file anew and keeps what it holds, as one tree would.
  Result<Journal::Opened> open() {
    tree = Tree();
    return Journal::open(disk, path, [this](std::vector<Change> each) { tree.apply(each); });
  }
  std::unique_ptr<Journal> opened() {
    auto result = open();
    EXPECT_TRUE(result) << to_string(result.error());
    return result ? std::move(result->journal) : nullptr;
  }
  std::string value(const std::string& key) {
    const auto found = tree.get(key);
    return found ? found->value : "";
  }
  std::uint64_t file_bytes() { return disk.info(path)->size; }
  void cut(std::uint64_t bytes) {
    auto file = disk.open(path, OpenMode::write);
    ASSERT_TRUE(file && (*file)->truncate(bytes));
  }

  SimWorld world{1};
  SimEnvironment& node = world.add_node("b1");
  SimDisk& disk = node.files();
  Tree tree;
};

TEST_F(JournalTest, ReadsBackWhatWasAppended) {
  auto journal = opened();
  ASSERT_TRUE(journal->append(set("/a", "one")));
  ASSERT_TRUE(journal->append(set("/b", "two", 5)));
  ASSERT_TRUE(journal->append({{"/a", std::nullopt}}));
  journal = opened();
  EXPECT_EQ(value("/a"), "");
  EXPECT_EQ(value("/b"), "two");
  EXPECT_EQ(tree.get("/b")->version, 5);
  EXPECT_EQ(journal->bytes(), file_bytes());
}

TEST_F(JournalTest, CutsATornTailWhereverItIsTorn) {
  auto journal = opened();
  ASSERT_TRUE(journal->append(set("/a", "one")));
  const auto whole = journal->bytes();
  ASSERT_TRUE(journal->append(set("/b", "two")));
  for (auto bytes = file_bytes() - 1; bytes > whole; --bytes) {
    cut(bytes);
    auto again = open();
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_EQ(again->bytes_cut, bytes - whole);
    EXPECT_EQ(value("/a"), "one");
    EXPECT_EQ(value("/b"), "");
    ASSERT_TRUE(again->journal->append(set("/b", "two")));
  }
}

// Wherever the damage is: in a length too, which then points behind the end of the file.
TEST_F(JournalTest, RefusesDamageWithMoreBehindItAndChangesNothing) {
  auto journal = opened();
  ASSERT_TRUE(journal->append(set("/a", "one")));
  const auto first_entry_bytes = journal->bytes();
  ASSERT_TRUE(journal->append(set("/b", "two")));
  const auto bytes = file_bytes();
  for (std::uint64_t at = 0; at < first_entry_bytes; ++at) {
    ASSERT_TRUE(disk.flip_bit(path, at));
    const auto damaged = open();
    ASSERT_FALSE(damaged) << "byte " << at;
    EXPECT_EQ(damaged.error().code, Errc::corrupt);
    EXPECT_THAT(damaged.error().detail, HasSubstr("the entry at byte 0 is damaged"));
    EXPECT_EQ(file_bytes(), bytes);
    ASSERT_TRUE(disk.flip_bit(path, at));
  }
  EXPECT_TRUE(open());
}

TEST_F(JournalTest, TakesZerosAtTheEndForATornTail) {
  auto journal = opened();
  ASSERT_TRUE(journal->append(set("/a", "one")));
  const auto whole = journal->bytes();
  cut(whole + 100);
  const auto again = open();
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(again->bytes_cut, 100u);
  EXPECT_EQ(value("/a"), "one");
}

TEST_F(JournalTest, TakesAFailedWriteBack) {
  auto journal = opened();
  ASSERT_TRUE(journal->append(set("/a", "one")));
  const auto bytes = journal->bytes();
  disk.limit_bytes(bytes + 10);
  EXPECT_FALSE(journal->append(set("/b", "does not fit")));
  EXPECT_EQ(journal->bytes(), bytes);
  disk.limit_bytes(std::nullopt);
  EXPECT_TRUE(journal->append(set("/c", "three")));
  journal = opened();
  EXPECT_EQ(value("/b"), "");
  EXPECT_EQ(value("/c"), "three");
}

TEST_F(JournalTest, TakesNothingMoreOnceItCannotTakeAWriteBack) {
  auto journal = opened();
  disk.fail_syncs(true);
  EXPECT_FALSE(journal->append(set("/a", "one")));
  disk.fail_syncs(false);
  const auto refused = journal->append(set("/b", "two"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("restart the broker"));
}

TEST_F(JournalTest, IsReplacedByOneEntry) {
  auto journal = opened();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(journal->append(set("/a", std::to_string(i))));
  ASSERT_TRUE(journal->rewrite(set("/a", "99", 99)));
  EXPECT_LT(file_bytes(), 50U);
  ASSERT_TRUE(journal->append(set("/b", "after")));
  journal = opened();
  EXPECT_EQ(value("/a"), "99");
  EXPECT_EQ(value("/b"), "after");
}

}  // namespace
}  // namespace millrace::standalone
