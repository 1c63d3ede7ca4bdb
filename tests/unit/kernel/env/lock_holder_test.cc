#include "kernel/env/lock_holder.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include <gtest/gtest.h>

#include "environment_fixture.h"
#include "kernel/env/posix_file_system.h"

namespace millrace::kernel {
namespace {

class LockHolderTest : public ::testing::Test {
 protected:
  std::string holder() const {
    const auto found = lock_holder(path_);
    EXPECT_TRUE(found) << found.error().detail;
    return found.value_or("");
  }

  PosixFileSystem files_;
  TemporaryFolder folder_;
  const std::string path_ = folder_ / ".lock";
};

TEST_F(LockHolderTest, NobodyHoldsWhatIsNotThere) {
  EXPECT_EQ(holder(), "");
  EXPECT_FALSE(files_.info(path_)) << "looking makes no file";
}

TEST_F(LockHolderTest, AHolderIsNamedAndNotDisturbed) {
  auto lock = files_.lock(path_);
  ASSERT_TRUE(lock) << lock.error().detail;
  EXPECT_EQ(holder(), "process " + std::to_string(::getpid()));
  EXPECT_EQ(holder(), "process " + std::to_string(::getpid()));
  lock->reset();
  EXPECT_EQ(holder(), "");
  EXPECT_TRUE(files_.lock(path_)) << "looking keeps no lock";
}

TEST_F(LockHolderTest, WhoTakesItWhileSomebodyLooksIsNotRefused) {
  std::jthread looking([this](const std::stop_token& enough) {
    while (!enough.stop_requested()) static_cast<void>(lock_holder(path_));
  });
  for (int at = 0; at < 3000; ++at) {
    const auto lock = files_.lock(path_);
    ASSERT_TRUE(lock) << "at " << at << ": " << lock.error().detail;
  }
}

// As java.nio.channels.FileChannel.tryLock takes it.
TEST_F(LockHolderTest, KafkasKindOfLockIsSeen) {
  int ready[2];
  int done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  const auto child = ::fork();
  if (child == 0) {
    const int file = ::open(path_.c_str(), O_RDWR | O_CREAT, 0600);
    struct flock whole{};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    const char locked = ::fcntl(file, F_SETLK, &whole) == 0 ? '1' : '0';
    char byte = 0;
    ::close(done[1]);
    const bool told = ::write(ready[1], &locked, 1) == 1;
    ::_exit(told && ::read(done[0], &byte, 1) == 0 ? 0 : 1);
  }
  char locked = 0;
  ASSERT_EQ(::read(ready[0], &locked, 1), 1);
  ASSERT_EQ(locked, '1');
  EXPECT_EQ(holder(), "process " + std::to_string(child));
  const auto refused = files_.lock(path_);
  ASSERT_FALSE(refused) << "Kafka runs there";
  EXPECT_EQ(refused.error().code, Errc::conflict);
  EXPECT_NE(refused.error().detail.find(std::to_string(child)), std::string::npos);
  for (const int end : {ready[0], ready[1], done[0], done[1]}) ::close(end);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(holder(), "");
}

}  // namespace
}  // namespace millrace::kernel
