// More segments than files may be open.
#include <random>

#include "filelog_subject.h"

namespace millrace::filelog {
namespace {

using testing::append_batch;
using testing::everything_from;
using testing::read_text;

constexpr std::size_t files_max = 4;
// The lock file is no log.
constexpr std::size_t others = 1;

class OpenFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(subject_.node().shards().size(), 1u);
    subject_.lock();
    auto opened = subject_.open({.index_interval_bytes = 100});
    ASSERT_TRUE(opened) << to_string(opened.error());
    log_ = std::move(opened->log);
  }
  void TearDown() override {
    if (log_) subject_.close(log_);
  }
  /// `segments` segments of three batches each.
  void fill(int segments) {
    for (int at = 0; at < segments; ++at) {
      if (at > 0) ASSERT_TRUE(log_->roll());
      for (int batch = 0; batch < 3; ++batch) {
        batches_.push_back(append_batch(*log_, 2, {1000 + at}, 80));
      }
    }
    ASSERT_TRUE(subject_.run(log_->flush(log_->bounds().end)));
  }
  std::string read_batch(std::size_t at) {
    const Offset from{static_cast<std::int64_t>(at) * 2};
    return read_text(subject_, *log_, {.from = from, .limit = from + 2, .bytes_max = 10'000});
  }

  FilelogSubject subject_{1, {.open_files_max = files_max}};
  std::unique_ptr<PartitionLog> log_;
  std::vector<Buffer> batches_;
};

TEST_F(OpenFilesTest, NoMoreStayOpenThanTheProcessMayHaveOpen) {
  auto& files = subject_.disk();
  EXPECT_EQ(files_to_keep_open(files, 4096), 4096u) << "nothing is known";
  const auto limit = [&files](const std::string& text) {
    ASSERT_TRUE(files.make_folders("/proc/self"));
    ASSERT_TRUE(replace_file(files, "/proc/self/limits", as_bytes(text)));
  };
  const std::string before =
      "Limit        Soft Limit   Hard Limit   Units\nMax processes  7  7  processes\n";
  limit(before + "Max open files            1024                 524288               files\n");
  EXPECT_EQ(files_to_keep_open(files, 4096), 128u);
  EXPECT_EQ(files_to_keep_open(files, 100), 100u);
  limit(before +
        "Max open files            unlimited            unlimited            files\n"
        "Max locked memory  8388608  8388608  bytes\n");
  EXPECT_EQ(files_to_keep_open(files, 4096), 4096u);
  limit("garbage");
  EXPECT_EQ(files_to_keep_open(files, 4096), 4096u);
}

TEST_F(OpenFilesTest, ManySegmentsAreWrittenAndReadWithFewFilesOpen) {
  fill(30);
  std::mt19937 random(7);
  for (int read = 0; read < 200; ++read) {
    const auto at = random() % batches_.size();
    ASSERT_EQ(read_batch(at), batches_[at].text()) << at;
    ASSERT_LE(subject_.disk().files_open(), files_max + others);
  }
  std::string all;
  for (const auto& batch : batches_) all += batch.text();
  EXPECT_EQ(read_text(subject_, *log_, everything_from({0})), all);
  EXPECT_EQ(subject_.run(log_->batch_at({1007}))->base_offset, Offset{42});
}

TEST_F(OpenFilesTest, AReaderKeepsTheFileOfItsRange) {
  fill(10);
  const auto held = subject_.run(log_->read({.from = {0}, .limit = {2}, .bytes_max = 10'000}));
  ASSERT_TRUE(held);
  for (std::size_t at = 0; at < batches_.size(); ++at) {
    ASSERT_EQ(read_batch(at), batches_[at].text());
  }
  EXPECT_LE(subject_.disk().files_open(), files_max + others + 1);
  // The file was closed and opened again meanwhile; a cut still must not change what is held.
  ASSERT_TRUE(log_->truncate_from({0}));
  append_batch(*log_, 1, {9000}, 300);
  EXPECT_EQ(held->flatten()->text(), batches_[0].text());
}

TEST_F(OpenFilesTest, AReaderOfTheActiveSegmentKeepsItsFileToo) {
  fill(10);
  const auto held = subject_.run(log_->read({.from = {54}, .limit = {60}, .bytes_max = 10'000}));
  ASSERT_TRUE(held);
  for (std::size_t at = 0; at < 27; ++at) ASSERT_EQ(read_batch(at), batches_[at].text());
  ASSERT_TRUE(log_->truncate_from({56}));
  append_batch(*log_, 5, {9000}, 300);
  EXPECT_EQ(held->flatten()->text(), testing::joined({batches_[27], batches_[28], batches_[29]}));
}

TEST_F(OpenFilesTest, AppendsGoOnWhereTheFileWasClosed) {
  fill(2);
  for (const int partition : {1, 2, 3, 4, 5}) {
    auto other = subject_.open({}, {"others", partition});
    ASSERT_TRUE(other);
    append_batch(*other->log, 1);
    append_batch(*log_, 1);
    append_batch(*other->log, 1);
    EXPECT_LE(subject_.disk().files_open(), files_max + others);
    subject_.close(other->log);
  }
  EXPECT_EQ(log_->bounds().end, Offset{17});
  EXPECT_TRUE(subject_.run(log_->flush({17})));
}

// In the order in which a start opens them, and after a crash, which leaves segments to be checked.
TEST_F(OpenFilesTest, ManyPartitionsAreOpenWithFewFiles) {
  subject_.close(log_);
  for (const bool crashed : {false, true}) {
    std::vector<std::unique_ptr<PartitionLog>> logs;
    for (int partition = 0; partition < 300; ++partition) {
      auto opened = subject_.open({}, {"many", partition});
      ASSERT_TRUE(opened) << to_string(opened.error());
      auto& log = *logs.emplace_back(std::move(opened->log));
      for (int segment = 0; segment < 3; ++segment) {
        append_batch(log, 1);
        ASSERT_TRUE(log.roll());
      }
      ASSERT_TRUE(subject_.run(log.flush(log.bounds().end)));
      // Flushes in the background have theirs, for a moment.
      subject_.run_until([&] { return subject_.disk().files_open() <= files_max + others; });
      append_batch(log, 1);
    }
    if (crashed) {
      for (auto& log : logs) subject_.close(log);
      break;
    }
    subject_.node().crash();
    for (auto& log : logs) (void)subject_.run(log->close());
    logs.clear();
    subject_.node().restart();
    subject_.restart();
    subject_.lock();
  }
}

}  // namespace
}  // namespace millrace::filelog
