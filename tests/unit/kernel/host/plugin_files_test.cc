#include "kernel/host/plugin_files.h"

#include "host_fixture.h"

namespace millrace::kernel {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(PluginFilesTest, ConfiguredFoldersComeFirstThenTheProgramsThenTheInstalled) {
  const PluginFiles files({"/a", "/b"});
  EXPECT_THAT(files.folders(),
              ElementsAre("/a", "/b", MILLRACE_PLUGIN_DIR, "/usr/lib/millrace/plugins"));
}

TEST(PluginFilesTest, TheFirstFolderThatHasAFileWins) {
  const TemporaryFolder a;
  const TemporaryFolder b;
  a.write("storage/tape.so", "");
  b.write("storage/tape.so", "");
  b.write("storage/drum.so", "");
  const PluginFiles files({a.path(), b.path()});
  EXPECT_EQ(files.find("storage", "tape"), a.path() + "/storage/tape.so");
  EXPECT_EQ(files.find("storage", "drum"), b.path() + "/storage/drum.so");
}

TEST(PluginFilesTest, NamesAreThoseOfEveryFolderOnce) {
  const TemporaryFolder a;
  const TemporaryFolder b;
  a.write("wire/tape.so", "");
  a.write("wire/readme.txt", "");
  b.write("wire/tape.so", "");
  b.write("wire/drum.so", "");
  EXPECT_THAT(PluginFiles({a.path(), b.path()}).names("wire"), ElementsAre("drum", "tape"));
}

TEST(PluginFilesTest, AMissingPluginNamesFoldersAndTheNearest) {
  const TemporaryFolder a;
  a.write("wire/memory.so", "");
  const auto found = PluginFiles({a.path()}).find("wire", "memroy");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::not_found);
  EXPECT_THAT(found.error().detail,
              AllOf(StartsWith("no plugin wire/memroy.so in " + a.path() + ", "),
                    HasSubstr("; nearest known: memory; wire plugins found: memory")));
}

}  // namespace
}  // namespace millrace::kernel
