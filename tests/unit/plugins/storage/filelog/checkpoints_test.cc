#include "plugins/storage/filelog/checkpoints.h"

#include "filelog_subject.h"

namespace millrace::filelog {
namespace {

TEST(CheckpointsTest, AreKafkasText) {
  const std::map<TopicPartition, Offset> offsets{{{"orders", 0}, {17}}, {{"a-b", 12}, {0}}};
  const auto text = write_checkpoint(offsets);
  EXPECT_EQ(text, "0\n2\na-b 12 0\norders 0 17\n");
  const auto read = read_checkpoint(text, "file");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(*read, offsets);
  EXPECT_TRUE(read_checkpoint("0\n0\n", "file"));
}

TEST(CheckpointsTest, SayWhichLineIsWrong) {
  const auto error_of = [](std::string_view text) {
    const auto read = read_checkpoint(text, "file");
    return read ? "none" : to_string(read.error());
  };
  EXPECT_EQ(error_of("1\n0\n"), "corrupt: file: line 1: expected version 0");
  EXPECT_EQ(error_of("0\nx\n"), "corrupt: file: line 2: expected the number of lines");
  EXPECT_EQ(error_of("0\n2\norders 0 17\n"),
            "corrupt: file: line 4: expected 'topic partition offset', found ''");
  EXPECT_EQ(error_of("0\n1\norders 17\n"),
            "corrupt: file: line 3: expected 'topic partition offset', found 'orders 17'");
}

TEST(CheckpointsTest, EveryPrefixOfAFileIsRefused) {
  const auto text = write_checkpoint({{{"orders", 0}, {17}}, {{"orders", 1}, {18}}});
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_FALSE(read_checkpoint(text.substr(0, size), "file")) << size;
  }
}

TEST(CheckpointsTest, AnUnreadableFileIsToldAndCountsAsNone) {
  FilelogSubject subject;
  subject.write("/data/recovery-point-offset-checkpoint", "nonsense");
  subject.lock();
  EXPECT_TRUE(subject.lines().contains("recovery-point-offset-checkpoint: line 1"));
  const auto points = subject.run(subject.storage().checkpointed(CheckpointKind::recovery_point));
  ASSERT_TRUE(points);
  EXPECT_TRUE(points->empty());
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
