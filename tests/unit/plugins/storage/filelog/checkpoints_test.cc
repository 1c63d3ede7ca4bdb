#include "plugins/storage/filelog/checkpoints.h"

#include "filelog_subject.h"

namespace millrace::filelog {
namespace {

TEST(CheckpointsTest, AnUnreadableFileIsToldAndCountsAsNone) {
  FilelogSubject subject;
  subject.write("/data/recovery-point-offset-checkpoint", "nonsense");
  subject.lock();
  EXPECT_TRUE(subject.lines().contains("recovery-point-offset-checkpoint: line 1"));
  const auto points = subject.run(subject.storage().checkpointed(CheckpointKind::recovery_point));
  ASSERT_TRUE(points);
  EXPECT_TRUE(points->empty());
}

TEST(CheckpointsTest, WhatALaterVersionHasWrittenIsRefusedAndStaysAsItIs) {
  for (const auto& [file, content] :
       {std::pair("/data/recovery-point-offset-checkpoint", "1\n0\n"),
        std::pair("/data/log-start-offset-checkpoint", "1\n0\n"),
        std::pair("/data/meta.properties", "node.id=1\ncluster.id=x\nversion=2\n")}) {
    FilelogSubject subject;
    subject.write("/data/.kafka_cleanshutdown", "{}");
    subject.write(file, content);
    const auto locked = subject.run(subject.storage().lock());
    ASSERT_FALSE(locked) << file;
    EXPECT_EQ(locked.error().code, Errc::incompatible);
    EXPECT_TRUE(locked.error().detail.starts_with(file)) << locked.error().detail;
    EXPECT_EQ(subject.content(file), content);
    EXPECT_TRUE(subject.exists("/data/.kafka_cleanshutdown")) << file;
  }
}

TEST(CheckpointsTest, NeverClaimMoreThanALogHasOnDisk) {
  FilelogSubject subject;
  subject.lock();
  auto opened = subject.open();
  ASSERT_TRUE(opened) << to_string(opened.error());
  testing::append_batch(*opened->log, 5);
  testing::append_batch(*opened->log, 5);
  ASSERT_TRUE(subject.run(opened->log->flush({10})));
  const auto stale = opened->log->bounds().recovery_point;
  ASSERT_TRUE(opened->log->truncate_from({5}));
  const std::vector<PartitionOffset> point{{testing::orders, stale}};
  ASSERT_TRUE(subject.run(subject.storage().checkpoint(CheckpointKind::recovery_point, point)));
  EXPECT_EQ(subject.content("/data/recovery-point-offset-checkpoint"), "0\n1\norders 0 5\n");
  subject.close(opened->log);
}

}  // namespace
}  // namespace millrace::filelog
