// Segments that are written anew: what a crash, a cut or a full disk makes of it at any moment.
#include <algorithm>
#include <functional>

#include "filelog_subject.h"

namespace millrace::filelog {
namespace {

using testing::append_batch;
using testing::everything_from;
using ::testing::HasSubstr;
using testing::make_batch;
using testing::parts_of;
using testing::read_text;

const std::string folder = orders_folder;

/// Four segments of three batches each, of three records; the rewrite is of the second and third.
class Scene {
 public:
  static constexpr Offset from{9};
  static constexpr Offset to{27};
  static constexpr Offset end{36};

  explicit Scene(std::uint64_t seed, StorageSettings settings = {},
                 std::optional<std::uint64_t> disk_bytes = std::nullopt)
      : subject(seed, settings) {
    subject.disk().limit_bytes(disk_bytes);
    subject.lock();
    open();
    for (std::int64_t at = 0; at < 12; ++at) {
      if (at > 0 && at % 3 == 0) EXPECT_TRUE(log->roll());
      batches.push_back(append_batch(*log, 3, {1000 + at}));
      if (at % 3 == 1) put_aborted(at / 3 * 9, std::to_string(at));
    }
  }
  ~Scene() {
    rewrite.reset();
    if (log) subject.close(log);
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void open() {
    opened = Opened();
    auto found = subject.open({.index_interval_bytes = 0});
    ASSERT_TRUE(found) << to_string(found.error());
    log = std::move(found->log);
    opened = std::move(*found);
  }
  void put_aborted(std::int64_t at, std::string_view text) {
    auto put = log->put_aux(AuxKind::aborted_transactions, {at}, Buffer::copy_of(text));
    ASSERT_TRUE(subject.run(std::move(put)));
  }
  void flush() { ASSERT_TRUE(subject.run(log->flush(end))); }

  /// Begins and fills it: of its six batches the first one of each segment stays.
  void write_rewrite() {
    auto begun = log->rewrite(from, to);
    ASSERT_TRUE(begun) << to_string(begun.error());
    rewrite = std::move(*begun);
    for (const auto at : {3U, 6U}) {
      const auto parts = parts_of(batches[at]);
      const auto appended = rewrite->append(std::span(&parts, 1));
      ASSERT_TRUE(appended) << to_string(appended.error());
    }
  }
  std::string read() { return read_text(subject, *log, everything_from(log->bounds().start)); }
  /// "0=a 9=b"
  std::string aborted() {
    std::string text;
    const auto entries = subject.run(log->aux(AuxKind::aborted_transactions));
    EXPECT_TRUE(entries) << to_string(entries.error());
    for (const auto& entry : *entries) {
      if (!text.empty()) text += ' ';
      text += std::to_string(entry.at.value) + "=" + std::string(entry.value.text());
    }
    return text;
  }
  std::string some(std::initializer_list<std::size_t> which) const {
    std::string text;
    for (const auto at : which) text += batches[at].text();
    return text;
  }
  std::string before() const { return some({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}); }
  std::string after() const { return some({0, 1, 2, 3, 6, 9, 10, 11}); }

  /// The power goes, and all is opened again.
  void crash() {
    rewrite.reset();
    subject.crash(log);
    subject.lock();
    open();
  }
  std::string first_names() {
    std::string names;
    for (const auto& name : subject.names(folder)) {
      if (name.find(".deleted") == std::string::npos) names += name + " ";
    }
    return names;
  }

  FilelogSubject subject;
  Opened opened;
  std::unique_ptr<PartitionLog> log;
  std::unique_ptr<LogRewrite> rewrite;
  std::vector<Buffer> batches;
};

constexpr const char* aborted_before = "0=1 9=4 18=7 27=10";
constexpr const char* aborted_after = "0=1 9=47 27=10";

TEST(RewriteTest, TakesThePlaceOfItsSegments) {
  Scene scene(1);
  scene.write_rewrite();
  EXPECT_TRUE(scene.subject.exists(folder + "/00000000000000000009.log.cleaned"));
  const auto committed = scene.subject.run(scene.rewrite->commit());
  ASSERT_TRUE(committed) << to_string(committed.error());
  scene.rewrite.reset();
  EXPECT_EQ(scene.read(), scene.after());
  EXPECT_EQ(scene.aborted(), aborted_after);
  EXPECT_GE(scene.log->bounds().recovery_point, Scene::to);
  EXPECT_EQ(scene.log->segments().size(), 3u);
  const std::string base = "00000000000000000009";
  EXPECT_THAT(scene.first_names(),
              HasSubstr(base + ".index " + base + ".log " + base + ".timeindex " + base +
                        ".txnindex 00000000000000000027"));
  EXPECT_THAT(scene.first_names(), ::testing::Not(HasSubstr(".swap")));
  // Its index is one of what it holds.
  OffsetIndex index;
  index.add({11, static_cast<std::int32_t>(scene.batches[3].size())});
  EXPECT_EQ(scene.subject.content(folder + "/" + base + ".index"), as_text(index.encode(0)));
}

TEST(RewriteTest, TheOldFilesGoAfterADelay) {
  Scene scene(1);
  scene.write_rewrite();
  ASSERT_TRUE(scene.subject.run(scene.rewrite->commit()));
  const auto old = folder + "/00000000000000000018.log.deleted";
  EXPECT_TRUE(scene.subject.exists(old));
  scene.subject.run_until([&] { return !scene.subject.exists(old); });
}

TEST(RewriteTest, IsThereAfterACrashThatFollowsIt) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Scene scene(seed);
    scene.flush();
    scene.write_rewrite();
    ASSERT_TRUE(scene.subject.run(scene.rewrite->commit()));
    scene.crash();
    EXPECT_EQ(scene.opened.bytes_cut, 0u) << scene.opened.cut_reason;
    EXPECT_EQ(scene.read(), scene.after());
    EXPECT_EQ(scene.aborted(), aborted_after);
    EXPECT_EQ(scene.log->bounds().end, Scene::end);
  }
}

// Nobody has stored a recovery point since the log was made, and one that is behind comes late.
TEST(RewriteTest, TheCheckpointKnowsThatItsGapsAreNoLoss) {
  Scene scene(1);
  const std::vector<PartitionOffset> old{{testing::orders, {3}}};
  scene.write_rewrite();
  ASSERT_TRUE(scene.subject.run(scene.rewrite->commit()));
  ASSERT_TRUE(
      scene.subject.run(scene.subject.storage().checkpoint(CheckpointKind::recovery_point, old)));
  const auto points =
      scene.subject.run(scene.subject.storage().checkpointed(CheckpointKind::recovery_point));
  ASSERT_TRUE(points);
  EXPECT_GE(points->front().offset, Scene::to);
  scene.crash();
  EXPECT_EQ(scene.read().substr(0, scene.some({0, 1, 2, 3, 6}).size()),
            scene.some({0, 1, 2, 3, 6}));
  // A cut takes that back.
  ASSERT_TRUE(scene.log->truncate_from({9}));
  EXPECT_EQ(scene.subject.run(scene.subject.storage().checkpointed(CheckpointKind::recovery_point))
                ->front()
                .offset,
            Offset{9});
}

/// What the first operation on the disk that fails leaves, for each of them; and the recovery from
/// that fails at each of its own.
void die_at_each_change(FilelogSubject::Death death) {
  int olds = 0;
  int news = 0;
  for (std::uint64_t kill = 0;; ++kill) {
    SCOPED_TRACE("the change of number " + std::to_string(kill));
    Scene scene(kill + 1);
    scene.flush();
    scene.subject.disk().crash_after(kill);
    bool done = false;
    if (auto begun = scene.log->rewrite(Scene::from, Scene::to)) {
      scene.rewrite = std::move(*begun);
      const auto first = parts_of(scene.batches[3]);
      const auto second = parts_of(scene.batches[6]);
      done = scene.rewrite->append(std::span(&first, 1)) &&
             scene.rewrite->append(std::span(&second, 1)) &&
             scene.subject.run(scene.rewrite->commit());
    }
    const bool over = !scene.subject.node().crashed() && scene.subject.disk().info("/data");
    scene.rewrite.reset();
    scene.subject.end(scene.log, death);
    for (std::uint64_t again = 0; again < kill % 12; ++again) {
      scene.subject.disk().crash_after(again);
      std::unique_ptr<PartitionLog> half;
      if (scene.subject.run(scene.subject.storage().lock())) {
        if (auto opened = scene.subject.open()) half = std::move(opened->log);
      }
      scene.subject.end(half, death);
    }
    scene.subject.lock();
    scene.open();
    const auto found = scene.read();
    EXPECT_TRUE(found == scene.before() || found == scene.after()) << found.size() << " bytes";
    if (done) EXPECT_EQ(found, scene.after());
    EXPECT_EQ(scene.aborted(), found == scene.before() ? aborted_before : aborted_after);
    EXPECT_EQ(scene.log->bounds().end, Scene::end);
    EXPECT_EQ(scene.opened.bytes_cut, 0u) << scene.opened.cut_reason;
    EXPECT_THAT(scene.first_names(), ::testing::Not(HasSubstr(".swap")));
    EXPECT_THAT(scene.first_names(), ::testing::Not(HasSubstr(".cleaned")));
    ++(found == scene.before() ? olds : news);
    if (over) break;
    ASSERT_LT(kill, 500u) << "it does not end";
  }
  EXPECT_GT(olds, 5);
  EXPECT_GT(news, 5);
}

TEST(RewriteTest, ACrashAtAnyMomentLeavesTheOldSegmentsOrTheNewOne) {
  die_at_each_change(&testing::SimEnvironment::crash);
}

// All that was done until then is there, synced or not: each step of the exchange is met as it is.
TEST(RewriteTest, AKillAtAnyMomentLeavesTheOldSegmentsOrTheNewOne) {
  die_at_each_change(&testing::SimEnvironment::kill);
}

/// A commit, in the midst of which, after so many steps of the environment, `then` happens; the
/// power goes after that.
void commit_and(const std::function<void(Scene&)>& then,
                const std::function<void(Scene&, bool committed)>& check) {
  for (int step = 0; step < 14; ++step) {
    SCOPED_TRACE("after " + std::to_string(step) + " steps");
    Scene scene(static_cast<std::uint64_t>(step) + 1);
    scene.flush();
    scene.write_rewrite();
    auto committing = start(scene.subject.shard(), scene.rewrite->commit());
    int steps = step;
    scene.subject.run_until([&] { return committing.is_ready() || steps-- <= 0; });
    then(scene);
    scene.subject.run_until([&] { return committing.is_ready(); });
    const auto committed = committing.await_resume();
    if (!committed) EXPECT_EQ(committed.error().code, Errc::conflict);
    check(scene, committed.has_value());
    const auto kept = scene.read();
    scene.crash();
    EXPECT_EQ(scene.read(), kept);
    EXPECT_THAT(scene.first_names(), ::testing::Not(HasSubstr(".swap")));
  }
}

TEST(RewriteTest, WhatIsCutMeanwhileStaysCut) {
  bool both[2] = {};
  commit_and([](Scene& scene) { ASSERT_TRUE(scene.log->truncate_from({18})); },
             [&](Scene& scene, bool committed) {
               both[committed ? 1 : 0] = true;
               EXPECT_EQ(scene.log->bounds().end, Offset{18});
               EXPECT_EQ(scene.read(),
                         committed ? scene.some({0, 1, 2, 3}) : scene.some({0, 1, 2, 3, 4, 5}));
             });
  EXPECT_TRUE(both[0] && both[1]);
}

TEST(RewriteTest, WhatIsTrimmedMeanwhileStaysAway) {
  commit_and(
      [](Scene& scene) {
        ASSERT_TRUE(scene.log->trim_before({18}));
        const std::vector<PartitionOffset> starts{{testing::orders, {18}}};
        ASSERT_TRUE(scene.subject.run(
            scene.subject.storage().checkpoint(CheckpointKind::log_start, starts)));
      },
      [](Scene& scene, bool committed) {
        EXPECT_EQ(scene.read(),
                  committed ? scene.some({6, 9, 10, 11}) : scene.some({6, 7, 8, 9, 10, 11}));
      });
}

TEST(RewriteTest, AResetMeanwhileEmptiesTheLog) {
  commit_and(
      [](Scene& scene) {
        ASSERT_TRUE(scene.log->reset_to({100}));
        scene.batches.push_back(append_batch(*scene.log, 3));
        ASSERT_TRUE(scene.subject.run(scene.log->flush({103})));
      },
      [](Scene& scene, bool) { EXPECT_EQ(scene.read(), scene.some({12})); });
}

TEST(RewriteTest, AppendsAndFlushesAndCutsBehindItGoOnMeanwhile) {
  commit_and(
      [](Scene& scene) {
        ASSERT_TRUE(scene.log->truncate_from({30}));
        scene.batches.push_back(append_batch(*scene.log, 4));
        ASSERT_TRUE(scene.log->roll());
        ASSERT_TRUE(scene.subject.run(scene.log->flush({34})));
      },
      [](Scene& scene, bool committed) {
        EXPECT_TRUE(committed);
        EXPECT_EQ(scene.read(), scene.some({0, 1, 2, 3, 6, 9, 12}));
      });
}

TEST(RewriteTest, ReadsSeeTheOldSegmentsOrTheNewOne) {
  for (int step = 0; step < 14; ++step) {
    SCOPED_TRACE("after " + std::to_string(step) + " steps");
    // So few files are open that segments are let go of and loaded again all the time.
    Scene scene(static_cast<std::uint64_t>(step) + 1, {.open_files_max = 2});
    scene.flush();
    scene.write_rewrite();
    auto committing = start(scene.subject.shard(), scene.rewrite->commit());
    int steps = step;
    scene.subject.run_until([&] { return committing.is_ready() || steps-- <= 0; });
    for (int reads = 0; reads < 20; ++reads) {
      auto reading = start(scene.subject.shard(), scene.log->read(everything_from({0})));
      scene.subject.run_until([&] { return reading.is_ready(); });
      const auto payload = reading.await_resume();
      ASSERT_TRUE(payload) << to_string(payload.error());
      const auto text = payload->flatten();
      ASSERT_TRUE(text) << to_string(text.error());
      // A read may end early, where something must be loaded.
      EXPECT_TRUE(scene.before().starts_with(text->text()) ||
                  scene.after().starts_with(text->text()));
    }
    scene.subject.run_until([&] { return committing.is_ready(); });
    EXPECT_TRUE(committing.await_resume());
    scene.rewrite.reset();
    EXPECT_EQ(scene.read(), scene.after());
    EXPECT_EQ(scene.subject.run(scene.log->batch_at({1007}))->base_offset, Offset{27});
    EXPECT_EQ(scene.subject.run(scene.log->batch_at({1004}))->base_offset, Offset{18});
  }
}

TEST(RewriteTest, AFullDiskEndsItAndLeavesTheLog) {
  Scene scene(1, {.reserve_bytes = 4096}, 1 << 20);
  scene.flush();
  auto begun = scene.log->rewrite(Scene::from, Scene::to);
  ASSERT_TRUE(begun);
  const auto big = parts_of(make_batch({9}, 1, {1000}, (1 << 20) - 4096));
  const auto appended = (*begun)->append(std::span(&big, 1));
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().code, Errc::io);
  EXPECT_THAT(appended.error().detail, HasSubstr("the disk is full"));
  begun->reset();
  begun = scene.log->rewrite(Scene::from, Scene::to);
  ASSERT_TRUE(begun);
  scene.subject.disk().fail_below(folder);
  const auto small = parts_of(scene.batches[3]);
  EXPECT_EQ((*begun)->append(std::span(&small, 1)).error().code, Errc::io);
  begun->reset();
  scene.subject.disk().fail_below("");
  EXPECT_EQ(scene.read(), scene.before());
  EXPECT_THAT(scene.first_names(), ::testing::Not(HasSubstr(".cleaned")));
  scene.write_rewrite();
  EXPECT_TRUE(scene.subject.run(scene.rewrite->commit()));
}

TEST(RewriteTest, ADiskThatDoesNotSyncLeavesTheLog) {
  Scene scene(1);
  scene.flush();
  scene.write_rewrite();
  scene.subject.disk().fail_syncs(true);
  EXPECT_FALSE(scene.subject.run(scene.rewrite->commit()));
  scene.subject.disk().fail_syncs(false);
  EXPECT_EQ(scene.subject.run(scene.rewrite->commit()).error().code, Errc::invalid_argument);
  scene.rewrite.reset();
  EXPECT_EQ(scene.read(), scene.before());
  append_batch(*scene.log, 1);
  scene.write_rewrite();
  ASSERT_TRUE(scene.subject.run(scene.rewrite->commit()));
  EXPECT_EQ(scene.log->segments().size(), 3u);
}

TEST(RewriteTest, OneThatIsDroppedGoesWithItsFiles) {
  Scene scene(1);
  scene.write_rewrite();
  EXPECT_EQ(scene.log->rewrite(Scene::from, Scene::to).error().code, Errc::conflict);
  scene.rewrite.reset();
  scene.write_rewrite();
  scene.rewrite.reset();
  scene.subject.run_until(
      [&] { return !scene.subject.exists(folder + "/00000000000000000009.log.cleaned.deleted"); });
  EXPECT_THAT(scene.first_names(), ::testing::Not(HasSubstr(".cleaned")));
  EXPECT_EQ(scene.read(), scene.before());
}

TEST(RewriteTest, ALogThatIsClosedUnderItWaitsForItsEnd) {
  Scene scene(1);
  scene.write_rewrite();
  scene.subject.close(scene.log);
  EXPECT_EQ(scene.subject.run(scene.rewrite->commit()).error().code, Errc::closed);
  EXPECT_EQ(scene.subject.open().error().code, Errc::conflict);
  scene.rewrite.reset();
  scene.open();
  EXPECT_EQ(scene.read(), scene.before());
}

TEST(RewriteTest, ACloseMeanwhileLeavesTheOldSegmentsOrTheNewOne) {
  for (int step = 0; step < 14; ++step) {
    SCOPED_TRACE("after " + std::to_string(step) + " steps");
    Scene scene(static_cast<std::uint64_t>(step) + 1);
    scene.write_rewrite();
    auto committing = start(scene.subject.shard(), scene.rewrite->commit());
    int steps = step;
    scene.subject.run_until([&] { return committing.is_ready() || steps-- <= 0; });
    scene.subject.close(scene.log);
    ASSERT_TRUE(committing.is_ready());
    const bool committed = committing.await_resume().has_value();
    scene.rewrite.reset();
    scene.open();
    EXPECT_EQ(scene.read(), committed ? scene.after() : scene.before());
  }
}

// What a truncation leaves of a segment with gaps ends where it was told to, after a restart too.
TEST(RewriteTest, ACutInAGapStaysWhereItWasMade) {
  Scene scene(1);
  scene.write_rewrite();
  ASSERT_TRUE(scene.subject.run(scene.rewrite->commit()));
  scene.rewrite.reset();
  ASSERT_TRUE(scene.log->truncate_from({24}));
  EXPECT_EQ(scene.log->bounds().end, Offset{24});
  EXPECT_EQ(scene.read(), scene.some({0, 1, 2, 3, 6}));
  scene.crash();
  EXPECT_EQ(scene.log->bounds().end, Offset{24});
  EXPECT_EQ(scene.read(), scene.some({0, 1, 2, 3, 6}));
  const auto more = append_batch(*scene.log, 2);
  EXPECT_EQ(scene.read(), scene.some({0, 1, 2, 3, 6}) + std::string(more.text()));
}

TEST(RewriteTest, ASegmentWithoutRecordsIsReadOver) {
  Scene scene(1);
  scene.flush();
  auto begun = scene.log->rewrite(Scene::from, Scene::to);
  ASSERT_TRUE(begun);
  ASSERT_TRUE(scene.subject.run((*begun)->commit()));
  begun->reset();
  const auto rest = scene.some({9, 10, 11});
  EXPECT_EQ(read_text(scene.subject, *scene.log, everything_from({15})), rest);
  EXPECT_EQ(scene.log->segments()[1].bytes, 0u);
  EXPECT_EQ(scene.log->segments()[1].max_timestamp, Timestamp{});
  scene.crash();
  EXPECT_EQ(scene.log->bounds().end, Scene::end);
  EXPECT_EQ(scene.read(), scene.some({0, 1, 2}) + rest);
  EXPECT_EQ(read_text(scene.subject, *scene.log, everything_from({15})), rest);
}

}  // namespace
}  // namespace millrace::filelog
