#include "plugins/coordination/standalone/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/bytes.h>
#include <millrace/testing/sim_environment.h>

#include "plugins/coordination/standalone/journal_format.h"

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

  void write(std::uint64_t position, std::string_view content) {
    auto file = disk.open(path, OpenMode::write);
    const auto part = as_bytes(content);
    ASSERT_TRUE(file && (*file)->write_at(position, std::span(&part, 1)));
  }
  /// As if the power had gone before a later seal reached the disk.
  void seal(std::uint64_t bytes) { write(0, encode_header(bytes)); }

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
    seal(whole);
    cut(bytes);
    auto again = open();
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_EQ(again->bytes_cut, bytes - whole);
    EXPECT_EQ(value("/a"), "one");
    EXPECT_EQ(value("/b"), "");
    ASSERT_TRUE(again->journal->append(set("/b", "two")));
  }
}

TEST_F(JournalTest, CutsAnEntryThatLacksASector) {
  auto journal = opened();
  ASSERT_TRUE(journal->append(set("/a", "one")));
  const auto whole = journal->bytes();
  const std::string zeros(512, '\0');
  for (std::uint64_t sector = 512; sector < 2048; sector += 512) {
    ASSERT_TRUE(journal->append(set("/b", std::string(2000, 'b'))));
    seal(whole);
    write(sector, zeros);
    auto again = open();
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_GT(again->bytes_cut, 2000U);
    EXPECT_EQ(value("/a"), "one");
    journal = std::move(again->journal);
  }
}

TEST_F(JournalTest, KeepsWhatWasAcknowledgedWhereverThePowerGoes) {
  for (std::uint64_t changes = 1; changes < 400; ++changes) {
    SimWorld other_world{changes};
    auto& other_disk = other_world.add_node("b1").files();
    int acknowledged = -1;
    {
      other_disk.crash_after(changes);
      auto made = Journal::open(other_disk, path, [](auto) {});
      while (made && made->journal->append(set("/a", std::to_string(acknowledged + 1)))) {
        ++acknowledged;
      }
    }
    other_disk.crash();
    other_disk.restart();
    int found = -1;
    const auto again = Journal::open(other_disk, path, [&found](std::vector<Change> each) {
      EXPECT_EQ(each.at(0).now->value, std::to_string(++found));
    });
    ASSERT_TRUE(again) << "after " << changes << " changes: " << to_string(again.error());
    EXPECT_GE(found, acknowledged) << "after " << changes << " changes";
  }
}

// Wherever the damage is: in a length too, which then points behind the end of the file.
TEST_F(JournalTest, RefusesDamageAndChangesNothing) {
  auto journal = opened();
  ASSERT_TRUE(journal->append(set("/a", "one")));
  const auto second_entry = journal->bytes();
  ASSERT_TRUE(journal->append(set("/b", "two")));
  const auto bytes = file_bytes();
  // Whether the last entry is known to have been on disk or not.
  for (const auto sealed : {bytes, second_entry, journal_header_bytes}) {
    seal(sealed);
    for (auto at = journal_header_bytes; at < bytes; ++at) {
      ASSERT_TRUE(disk.flip_bit(path, at));
      const auto damaged = open();
      ASSERT_FALSE(damaged) << "byte " << at;
      EXPECT_EQ(damaged.error().code, Errc::corrupt);
      const auto entry = at < second_entry ? journal_header_bytes : second_entry;
      EXPECT_THAT(damaged.error().detail,
                  HasSubstr(path + ": the entry at byte " + std::to_string(entry) + " is damaged"));
      EXPECT_EQ(file_bytes(), bytes);
      ASSERT_TRUE(disk.flip_bit(path, at));
    }
  }
  EXPECT_TRUE(open());
}

TEST_F(JournalTest, RefusesALaterVersionAndChangesNothing) {
  ASSERT_TRUE(opened()->append(set("/a", "one")));
  std::string header = "MRJ2" + encode_header(file_bytes()).substr(4, 8);
  header.resize(journal_header_bytes);
  store_be(std::as_writable_bytes(std::span(header)).data() + 12,
           crc32c(as_bytes(std::string_view(header).substr(0, 12))));
  write(0, header);
  const auto bytes = file_bytes();
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::incompatible);
  EXPECT_EQ(refused.error().detail,
            path +
                ": is a journal of version 2, and this broker knows version 1; nothing was "
                "changed. Start the version of Millrace that has written it");
  EXPECT_EQ(file_bytes(), bytes);

  // One bit of damage makes a 1 a 3.
  header[3] = '3';
  write(0, header);
  const auto damaged = open();
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, Errc::corrupt);
}

TEST_F(JournalTest, RefusesAFileThatHasBecomeShorter) {
  auto journal = opened();
  ASSERT_TRUE(journal->append(set("/a", "one")));
  ASSERT_TRUE(journal->append(set("/b", "two")));
  for (auto bytes = file_bytes(); bytes-- > 0;) {
    cut(bytes);
    const auto damaged = open();
    ASSERT_FALSE(damaged) << bytes << " bytes";
    EXPECT_EQ(damaged.error().code, Errc::corrupt);
    EXPECT_EQ(file_bytes(), bytes);
  }
}

TEST_F(JournalTest, ReadsOnAndTellsWhenTheSealIsDamaged) {
  auto journal = opened();
  ASSERT_TRUE(journal->append(set("/a", "one")));
  for (std::uint64_t at = 4; at < journal_header_bytes; ++at) {
    ASSERT_TRUE(disk.flip_bit(path, at));
    const auto again = open();
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_TRUE(again->seal_damaged);
    EXPECT_EQ(value("/a"), "one");
    ASSERT_TRUE(disk.flip_bit(path, at));
  }
  EXPECT_FALSE(open()->seal_damaged);
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
  EXPECT_LT(file_bytes(), 60U);
  ASSERT_TRUE(journal->append(set("/b", "after")));
  journal = opened();
  EXPECT_EQ(value("/a"), "99");
  EXPECT_EQ(value("/b"), "after");
}

}  // namespace
}  // namespace millrace::standalone
