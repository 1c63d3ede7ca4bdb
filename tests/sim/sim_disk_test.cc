// What a disk keeps and what it forgets.
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <millrace/testing/sim_environment.h>

namespace millrace::testing {
namespace {

using std::chrono::seconds;

Result<> write(File& file, std::uint64_t position, std::string_view text) {
  const auto part = as_bytes(text);
  return file.write_at(position, std::span(&part, 1));
}

class SimDiskTest : public ::testing::Test {
 protected:
  std::shared_ptr<File> create(const std::string& path) {
    auto file = disk.open(path, OpenMode::create);
    EXPECT_TRUE(file);
    return *file;
  }
  std::string content(const std::string& path) {
    const auto buffer = read_file(disk, path);
    return buffer ? std::string(buffer->text()) : to_string(buffer.error());
  }

  SimWorld world{11};
  SimEnvironment& node = world.add_node("b1");
  SimDisk& disk = node.files();
};

TEST_F(SimDiskTest, ReadsBackWhatWasWritten) {
  const auto file = create("/data/x");
  ASSERT_TRUE(write(*file, 0, "hello"));
  ASSERT_TRUE(write(*file, 3, "p, wanted"));
  EXPECT_EQ(content("/data/x"), "help, wanted");
  ASSERT_TRUE(file->truncate(4));
  EXPECT_EQ(content("/data/x"), "help");
  EXPECT_EQ(disk.info("/data/x")->size, 4U);
}

TEST_F(SimDiskTest, KeepsWhatWasSyncedWithItsName) {
  const auto file = create("/data/x");
  ASSERT_TRUE(write(*file, 0, "kept"));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(disk.sync_folder("/data"));
  node.crash();
  node.restart();
  EXPECT_EQ(content("/data/x"), "kept");
}

TEST_F(SimDiskTest, ForgetsNamesThatWereNotSynced) {
  std::set<bool> kept;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimWorld other(seed);
    auto& machine = other.add_node("b1");
    auto file = machine.files().open("/data/x", OpenMode::create);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->sync());
    machine.crash();
    machine.restart();
    kept.insert(machine.files().info("/data/x").has_value());
  }
  EXPECT_EQ(kept.size(), 2U) << "chance decides, so both must be seen";
}

TEST_F(SimDiskTest, KeepsAPrefixOfUnsyncedWritesPerhapsTorn) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SimWorld other(seed);
    auto& machine = other.add_node("b1");
    auto file = machine.files().open("/data/x", OpenMode::create);
    ASSERT_TRUE(file && machine.files().sync_folder("/data"));
    ASSERT_TRUE(write(**file, 0, "ab"));
    ASSERT_TRUE((*file)->sync());
    ASSERT_TRUE(write(**file, 2, "cd") && write(**file, 4, "ef"));
    machine.crash();
    machine.restart();
    const auto left = read_file(machine.files(), "/data/x");
    ASSERT_TRUE(left);
    seen.insert(std::string(left->text()));
  }
  const std::string zero(1, '\0');
  const std::set<std::string> possible{"ab", "abc", "abcd", "abcde", "abcdef", "ab" + zero + zero,
                                       "abc" + zero, "abcd" + zero + zero, "abcde" + zero,
                                       // Written in another order, as one sector each.
                                       "ab" + zero + zero + "e", "ab" + zero + zero + "ef",
                                       "ab" + zero + zero + zero, "ab" + zero + zero + zero + zero};
  for (const auto& text : seen) EXPECT_TRUE(possible.contains(text)) << text;
  EXPECT_TRUE(seen.contains("ab") && seen.contains("abcdef") && seen.contains("abcde"));
}

// The system writes pages in whatever order.
TEST_F(SimDiskTest, LaterSectorsMayBeThereWithoutEarlierOnes) {
  constexpr std::size_t sector = 512;
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SimWorld other(seed);
    auto& machine = other.add_node("b1");
    auto file = machine.files().open("/data/x", OpenMode::create);
    ASSERT_TRUE(file && machine.files().sync_folder("/data"));
    ASSERT_TRUE(write(**file, 0, std::string(sector, 'a')));
    ASSERT_TRUE((*file)->sync());
    ASSERT_TRUE(write(**file, sector, std::string(2 * sector, 'b')));
    ASSERT_TRUE(write(**file, 3 * sector, std::string(sector, 'c')));
    machine.crash();
    machine.restart();
    const auto left = read_file(machine.files(), "/data/x");
    ASSERT_TRUE(left);
    ASSERT_EQ(left->text().substr(0, sector), std::string(sector, 'a')) << "it was synced";
    std::string sectors;
    for (std::size_t at = 0; at + sector <= left->size(); at += sector) {
      const auto one = left->text().substr(at, sector);
      sectors += one.front() == 0 ? '0' : one.front();
    }
    seen.insert(sectors);
  }
  for (const auto* wanted : {"a", "abb", "abbc", "a0bc", "ab0c", "a00c", "a0b"}) {
    EXPECT_TRUE(seen.contains(wanted)) << wanted;
  }
}

TEST_F(SimDiskTest, ReplacesAFileAsAWholeOrNotAtAll) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimWorld other(seed);
    auto& machine = other.add_node("b1");
    auto& files = machine.files();
    ASSERT_TRUE(replace_file(files, "/data/x", as_bytes("old")));
    auto begun = files.open("/data/x.tmp", OpenMode::create);
    ASSERT_TRUE(begun && write(**begun, 0, "new") && (*begun)->sync());
    ASSERT_TRUE(files.rename("/data/x.tmp", "/data/x"));
    machine.crash();
    machine.restart();
    const auto left = read_file(files, "/data/x");
    ASSERT_TRUE(left);
    EXPECT_TRUE(left->text() == "old" || left->text() == "new") << left->text();
  }
}

TEST_F(SimDiskTest, IsOutOfReachAfterACrashAndOldFilesStaySo) {
  const auto file = create("/data/x");
  const auto lock = disk.lock("/data/lock");
  ASSERT_TRUE(lock);
  node.crash();
  EXPECT_EQ(disk.open("/data/y", OpenMode::create).error().code, Errc::io);
  EXPECT_EQ(write(*file, 0, "ghost").error().code, Errc::io);
  node.restart();
  EXPECT_EQ(write(*file, 0, "ghost").error().code, Errc::io);
  EXPECT_TRUE(disk.lock("/data/lock"));
}

TEST_F(SimDiskTest, LocksOnce) {
  auto lock = disk.lock("/data/lock");
  ASSERT_TRUE(lock);
  EXPECT_EQ(disk.lock("/data/lock").error().code, Errc::conflict);
  lock->reset();
  EXPECT_TRUE(disk.lock("/data/lock"));
}

TEST_F(SimDiskTest, StoresWhatFitsAndThenFails) {
  const auto file = create("/data/x");
  disk.limit_bytes(6);
  ASSERT_TRUE(write(*file, 0, "1234"));
  EXPECT_EQ(write(*file, 4, "5678").error().code, Errc::io);
  EXPECT_EQ(content("/data/x"), "123456");
  EXPECT_EQ(disk.space("/data")->bytes_free, 0U);
  disk.limit_bytes(std::nullopt);
  EXPECT_TRUE(write(*file, 4, "5678"));
}

TEST_F(SimDiskTest, FailsToSyncWhenToldTo) {
  const auto file = create("/data/x");
  disk.fail_syncs(true);
  EXPECT_EQ(file->sync().error().code, Errc::io);
  EXPECT_EQ(disk.sync_folder("/data").error().code, Errc::io);
}

TEST_F(SimDiskTest, AShardThatWritesWaitsForASlowDiskAndOthersDoNot) {
  const auto file = create("/data/x");
  disk.slow_down(seconds(3));
  auto& shard = *node.shards()[0];
  auto& other = node.control();
  const auto begun = world.now();
  std::optional<MonoTime> written, next, elsewhere, told;
  shard.post([&] {
    EXPECT_TRUE(write(*file, 0, "x"));
    written = shard.now();
    other.post([&] { told = other.now(); });
  });
  shard.post([&] { next = shard.now(); });
  other.post([&] { elsewhere = other.now(); });
  ASSERT_TRUE(world.run_until([&] { return next && elsewhere && told; }, seconds(10)));
  EXPECT_GT(*written, begun);
  EXPECT_LE(*written, begun + seconds(3));
  EXPECT_EQ(*next, *written);
  EXPECT_EQ(*told, *written);
  EXPECT_EQ(*elsewhere, begun);
}

TEST_F(SimDiskTest, AWorkerThatSyncsWaitsForASlowDiskAndItsShardDoesNot) {
  const auto file = create("/data/x");
  disk.slow_down(seconds(3));
  auto& shard = *node.shards()[0];
  const auto begun = world.now();
  const auto sync = [&] { return on_worker(node.workers(), [&] { return file->sync(); }); };
  std::optional<MonoTime> meanwhile;
  shard.post([&] { meanwhile = shard.now(); });
  ASSERT_TRUE(world.run(shard, sync));
  EXPECT_GT(world.now(), begun);
  EXPECT_LE(world.now(), begun + seconds(3));
  EXPECT_EQ(meanwhile, begun);
  disk.slow_down({});
  const auto quick = world.now();
  ASSERT_TRUE(world.run(shard, sync));
  EXPECT_EQ(world.now(), quick);
}

TEST_F(SimDiskTest, SlowsOneInSoManyChanges) {
  const auto file = create("/data/x");
  disk.slow_down(seconds(3), 4);
  auto& shard = *node.shards()[0];
  int slow = 0;
  for (int n = 0; n < 100; ++n) {
    shard.post([&] {
      const auto before = shard.now();
      EXPECT_TRUE(write(*file, 0, "x"));
      slow += shard.now() > before ? 1 : 0;
    });
  }
  world.run_for(std::chrono::minutes(10));
  EXPECT_GT(slow, 10);
  EXPECT_LT(slow, 50);
}

TEST_F(SimDiskTest, FlipsABitForReadersAndForEver) {
  ASSERT_TRUE(replace_file(disk, "/data/x", as_bytes("A")));
  ASSERT_TRUE(disk.flip_bit("/data/x", 0));
  EXPECT_EQ(content("/data/x"), "@");
  EXPECT_EQ(disk.flip_bit("/data/x", 1).error().code, Errc::out_of_range);
  node.crash();
  node.restart();
  EXPECT_EQ(content("/data/x"), "@");
}

TEST_F(SimDiskTest, ListsSortedAndRemovesTrees) {
  ASSERT_TRUE(disk.make_folders("/data/b/c"));
  create("/data/b/c/file");
  create("/data/a");
  const auto listed = disk.list("/data");
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 2U);
  EXPECT_EQ((*listed)[0].name, "a");
  EXPECT_TRUE((*listed)[1].is_folder);
  EXPECT_EQ(disk.remove("/data/b").error().code, Errc::conflict);
  EXPECT_TRUE(disk.remove_tree("/data/b"));
  EXPECT_EQ(disk.info("/data/b").error().code, Errc::not_found);
  EXPECT_EQ(disk.open("/data/b/c/file", OpenMode::read).error().code, Errc::not_found);
}

}  // namespace
}  // namespace millrace::testing
