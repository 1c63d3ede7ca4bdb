#include "kernel/env/posix_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "environment_fixture.h"
#include "kernel/env/posix_file_system.h"

namespace millrace::kernel {
namespace {

using testing::HasSubstr;

class PosixFileTest : public ::testing::Test {
 protected:
  std::shared_ptr<File> create(std::string_view name) {
    auto file = files_.open(folder_ / name, OpenMode::create);
    EXPECT_TRUE(file) << file.error().detail;
    return *file;
  }
  static Result<> write(File& file, std::uint64_t position, std::string_view text) {
    const auto part = as_bytes(text);
    return file.write_at(position, std::span(&part, 1));
  }
  static std::string read(const File& file, std::uint64_t position, std::size_t bytes) {
    std::string text(bytes, '?');
    const auto filled = file.read_at(position, std::as_writable_bytes(std::span(text)));
    EXPECT_TRUE(filled);
    text.resize(filled.value_or(0));
    return text;
  }

  PosixFileSystem files_;
  TemporaryFolder folder_;
};

TEST_F(PosixFileTest, WritesGatheredPartsAndReadsThemBack) {
  const auto file = create("log");
  std::vector<std::string> texts;
  std::vector<Bytes> parts;
  std::string whole;
  for (int i = 0; i < 1000; ++i) texts.push_back(i % 3 == 0 ? "" : "part " + std::to_string(i));
  for (const auto& text : texts) {
    parts.push_back(as_bytes(text));
    whole += text;
  }
  ASSERT_TRUE(file->write_at(10, parts));
  EXPECT_EQ(file->size().value_or(0), 10 + whole.size());
  EXPECT_EQ(read(*file, 10, whole.size()), whole);
  EXPECT_EQ(read(*file, 10 + whole.size() - 3, 100), whole.substr(whole.size() - 3));
  EXPECT_EQ(read(*file, 1'000'000, 5), "");
  EXPECT_TRUE(file->write_at(0, {}));
  EXPECT_TRUE(file->sync());
}

TEST_F(PosixFileTest, Truncates) {
  const auto file = create("log");
  ASSERT_TRUE(write(*file, 0, "0123456789"));
  ASSERT_TRUE(file->truncate(4));
  EXPECT_EQ(read(*file, 0, 100), "0123");
}

TEST_F(PosixFileTest, StaysReadableAfterItsNameIsGone) {
  const auto file = create("log");
  ASSERT_TRUE(write(*file, 0, "still here"));
  ASSERT_TRUE(files_.remove(folder_ / "log"));
  EXPECT_EQ(read(*file, 0, 100), "still here");
}

TEST_F(PosixFileTest, AFullDiskIsNamed) {
  auto file = files_.open("/dev/full", OpenMode::write);
  ASSERT_TRUE(file);
  const auto written = write(**file, 0, "x");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::io);
  EXPECT_THAT(written.error().detail,
              testing::AllOf(HasSubstr("write /dev/full at byte 0"), HasSubstr("No space left")));
}

TEST_F(PosixFileTest, GoesOnAfterAPartialWriteAndSaysWhereItEnded) {
  const auto file = create("log");
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written = write(*file, 1000, std::string(10'000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);

  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().detail, testing::AllOf(HasSubstr("log at byte 4096"),
                                                     HasSubstr("behind byte 1000 is unknown"),
                                                     HasSubstr("File too large")));
  EXPECT_EQ(file->size().value_or(0), 4096);
}

TEST_F(PosixFileTest, WhatWasJustWrittenIsResident) {
  const auto file = create("log");
  const std::string content(1 << 20, 'x');
  ASSERT_TRUE(write(*file, 0, content));
  EXPECT_TRUE(file->resident(0, content.size()));
  EXPECT_TRUE(file->resident(12'345, 1));
  EXPECT_TRUE(file->resident(0, 0));
}

TEST_F(PosixFileTest, WhatTheSystemHasForgottenIsNotResident) {
  const auto file = create("log");
  const std::string content(1 << 20, 'x');
  ASSERT_TRUE(write(*file, 0, content));
  ASSERT_TRUE(file->sync());
  ASSERT_EQ(::posix_fadvise(file->descriptor(), 512 << 10, 0, POSIX_FADV_DONTNEED), 0);
  // Some file systems live in memory and forget nothing: a read that may not wait tells.
  char byte = 0;
  const iovec vector{&byte, 1};
  const bool forgotten = ::preadv2(file->descriptor(), &vector, 1, (1 << 20) - 1, RWF_NOWAIT) < 0;
  EXPECT_EQ(file->resident(0, content.size()), !forgotten);
  EXPECT_EQ(file->resident(content.size() - 1, 1), !forgotten);
  EXPECT_TRUE(file->resident(0, 512 << 10));
}

TEST_F(PosixFileTest, WhatIsBroughtInIsInMemoryAndWhatFollowsIsNot) {
  const auto file = create("log");
  constexpr std::uint64_t bytes = 4 << 20;
  ASSERT_TRUE(write(*file, 0, std::string(bytes, 'x')));
  ASSERT_TRUE(file->sync());
  const auto* cached = CachedFile::of(*file);
  ASSERT_NE(cached, nullptr);
  cached->forget(0, bytes);
  // Some file systems live in memory and forget nothing.
  const bool stays = file->resident(0, bytes);
  ASSERT_TRUE(cached->bring_in(1 << 20, 1 << 20));
  EXPECT_TRUE(file->resident(1 << 20, 1 << 20));
  EXPECT_EQ(file->resident(0, 1 << 20), stays);
  EXPECT_EQ(file->resident(2 << 20, 4096), stays);
  // Nor does reading what is there have the system fetch more.
  EXPECT_EQ(read(*file, 1 << 20, 1 << 20), std::string(1 << 20, 'x'));
  EXPECT_EQ(file->resident(2 << 20, 4096), stays);
  cached->forget(1 << 20, 1 << 20);
  EXPECT_EQ(file->resident(1 << 20, 4096), stays);
}

// The system counts a page as had as soon as it is asked for.
TEST_F(PosixFileTest, WhatIsOnItsWayIsNotResident) {
  const auto file = create("log");
  constexpr std::uint64_t bytes = 8 << 20;
  constexpr std::uint64_t page = 4096;
  ASSERT_TRUE(write(*file, 0, std::string(bytes, 'x')));
  ASSERT_TRUE(file->sync());
  for (int round = 0; round < 20; ++round) {
    CachedFile::of(*file)->forget(0, bytes);
    static_cast<void>(file->resident(0, bytes));  // it is known to have been cold
    for (std::uint64_t at = 0; at < bytes; at += bytes / 64) {
      ::posix_fadvise(file->descriptor(), static_cast<off_t>(at), bytes / 64, POSIX_FADV_WILLNEED);
    }
    while (!file->resident(0, bytes)) {
    }
    for (std::uint64_t at = 0; at < bytes; at += page) {
      char byte = 0;
      const iovec vector{&byte, 1};
      const auto position = static_cast<off_t>(at);
      ASSERT_EQ(::preadv2(file->descriptor(), &vector, 1, position, RWF_NOWAIT), 1)
          << "the page at byte " << at << " has to be waited for";
    }
  }
}

TEST_F(PosixFileTest, WhoReadsOnHasItInMemoryAndIsToldWhatTheSystemMayHaveReadToo) {
  const auto file = create("log");
  constexpr std::uint64_t megabyte = 1 << 20;
  ASSERT_TRUE(write(*file, 0, std::string(8 * megabyte, 'x')));
  ASSERT_TRUE(file->sync());
  const auto* ahead = ReadAheadFile::of(*file);
  CachedFile::of(*file)->forget(0, 8 * megabyte);
  // Some file systems live in memory and forget nothing.
  const bool stays = file->resident(0, 1);
  for (std::uint64_t at = 0; at < 4; ++at) {
    const auto read_to = ahead->read_on(at * megabyte, megabyte);
    ASSERT_TRUE(read_to) << read_to.error().detail;
    EXPECT_GE(*read_to, (at + 1) * megabyte);
    EXPECT_TRUE(at > 0 || stays == (*read_to == megabyte));
    EXPECT_TRUE(file->resident(at * megabyte, megabyte));
  }
  EXPECT_EQ(ahead->read_on(0, 4 * megabyte).value_or(0), 4 * megabyte);  // nothing is read again
  EXPECT_EQ(ahead->read_on(8 * megabyte - 1, 2).error().code, Errc::out_of_range);
}

TEST_F(PosixFileTest, WhatIsNotThereCannotBeBroughtIn) {
  const auto file = create("log");
  ASSERT_TRUE(write(*file, 0, "short"));
  const auto* cached = CachedFile::of(*file);
  EXPECT_TRUE(cached->bring_in(0, 5));
  EXPECT_TRUE(cached->bring_in(5, 0));
  const auto missing = cached->bring_in(2, 10);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::out_of_range);
  EXPECT_THAT(missing.error().detail, HasSubstr("log: ends at byte 5, where 7 more are expected"));
}

TEST_F(PosixFileTest, OpenSaysWhatIsMissing) {
  for (const auto mode : {OpenMode::read, OpenMode::write}) {
    const auto missing = files_.open(folder_ / "missing", mode);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Errc::not_found);
    EXPECT_EQ(missing.error().detail,
              "open " + folder_ / "missing" + ": No such file or directory");
  }
}

TEST_F(PosixFileTest, AFileOpenedForReadingIsNotWritten) {
  create("log");
  auto file = files_.open(folder_ / "log", OpenMode::read);
  ASSERT_TRUE(file);
  EXPECT_FALSE(write(**file, 0, "x"));
}

// ---- folders ----

TEST_F(PosixFileTest, ListsByName) {
  ASSERT_TRUE(files_.make_folders(folder_ / "b/nested"));
  ASSERT_TRUE(write(*create("c"), 0, "12345"));
  create("a");
  const auto entries = files_.list(folder_.path());
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 3);
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_TRUE((*entries)[1].is_folder);
  EXPECT_EQ((*entries)[2].name, "c");
  EXPECT_EQ((*entries)[2].size, 5);
  EXPECT_GT((*entries)[2].modified.ms, 1'700'000'000'000);
  EXPECT_EQ(files_.list(folder_ / "missing").error().code, Errc::not_found);
}

TEST_F(PosixFileTest, InfoTellsFilesFromFolders) {
  ASSERT_TRUE(write(*create("file"), 0, "123"));
  const auto file = files_.info(folder_ / "file");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->name, "file");
  EXPECT_EQ(file->size, 3);
  EXPECT_FALSE(file->is_folder);
  EXPECT_TRUE(files_.info(folder_.path())->is_folder);
  EXPECT_EQ(files_.info(folder_ / "missing").error().code, Errc::not_found);
}

TEST_F(PosixFileTest, MakesFoldersOnTheWayAndTwice) {
  EXPECT_TRUE(files_.make_folders(folder_ / "a/b/c"));
  EXPECT_TRUE(files_.make_folders(folder_ / "a/b/c"));
  EXPECT_TRUE(files_.make_folders(folder_ / "a/b/c/"));
  EXPECT_TRUE(files_.info(folder_ / "a/b/c")->is_folder);
  create("file");
  EXPECT_EQ(files_.make_folders(folder_ / "file").error().code, Errc::conflict);
  EXPECT_FALSE(files_.make_folders(folder_ / "file/below"));
}

TEST_F(PosixFileTest, SyncsTheWholeDiskThatHoldsAFolder) {
  ASSERT_TRUE(write(*create("new"), 0, "new"));
  EXPECT_TRUE(files_.sync_all(folder_.path()));
  EXPECT_EQ(files_.sync_all(folder_ / "absent").error().code, Errc::not_found);
}

TEST_F(PosixFileTest, RenamesOverWhatIsThere) {
  ASSERT_TRUE(write(*create("new"), 0, "new"));
  ASSERT_TRUE(write(*create("old"), 0, "old"));
  ASSERT_TRUE(files_.rename(folder_ / "new", folder_ / "old"));
  EXPECT_TRUE(files_.sync_folder(folder_.path()));
  EXPECT_EQ(read_file(files_, folder_ / "old")->text(), "new");
  EXPECT_EQ(files_.info(folder_ / "new").error().code, Errc::not_found);
  EXPECT_THAT(files_.rename(folder_ / "new", folder_ / "x").error().detail,
              HasSubstr("rename " + folder_ / "new"));
}

TEST_F(PosixFileTest, ReplacesAFileAsAWhole) {
  const auto path = folder_ / "checkpoint";
  ASSERT_TRUE(replace_file(files_, path, as_bytes("a longer first version")));
  ASSERT_TRUE(replace_file(files_, path, as_bytes("second")));
  EXPECT_EQ(read_file(files_, path)->text(), "second");
  EXPECT_EQ(files_.list(folder_.path())->size(), 1);
}

TEST_F(PosixFileTest, RemovesTrees) {
  ASSERT_TRUE(files_.make_folders(folder_ / "tree/below"));
  create("tree/below/file");
  EXPECT_EQ(files_.remove(folder_ / "tree").error().code, Errc::conflict);
  EXPECT_TRUE(files_.remove_tree(folder_ / "tree"));
  EXPECT_TRUE(files_.remove_tree(folder_ / "tree"));
  EXPECT_EQ(files_.info(folder_ / "tree").error().code, Errc::not_found);
}

TEST_F(PosixFileTest, MeasuresSpace) {
  const auto space = files_.space(folder_.path());
  ASSERT_TRUE(space);
  EXPECT_GT(space->bytes_total, 0);
  EXPECT_LE(space->bytes_free, space->bytes_total);
}

// ---- locks ----

TEST_F(PosixFileTest, ALockHeldByAnotherProcessNamesIt) {
  const auto path = folder_ / ".lock";
  int ready[2];
  int release[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(release), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = files_.lock(path);
    const char answer = held ? 'y' : 'n';
    char ignored;
    static_cast<void>(!::write(ready[1], &answer, 1));
    static_cast<void>(!::read(release[0], &ignored, 1));
    ::_exit(0);  // without unlocking: the system does
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');

  const auto refused = files_.lock(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::conflict);
  EXPECT_THAT(refused.error().detail, HasSubstr("held by process " + std::to_string(child) + ";"));

  ASSERT_EQ(::write(release[1], "x", 1), 1);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(files_.lock(path));
  for (const int number : {ready[0], ready[1], release[0], release[1]}) ::close(number);
}

TEST_F(PosixFileTest, ALockIsHeldOnceAndFreedWhenDropped) {
  auto first = files_.lock(folder_ / ".lock");
  ASSERT_TRUE(first);
  const auto second = files_.lock(folder_ / ".lock");
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().detail, HasSubstr(std::to_string(::getpid())));
  first->reset();
  EXPECT_TRUE(files_.lock(folder_ / ".lock"));
}

}  // namespace
}  // namespace millrace::kernel
