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

TEST(PluginFilesTest, ARightNameInTheWrongPlaceIsTold) {
  const TemporaryFolder a;
  a.write("storage/drum.so", "");
  const auto other_kind = PluginFiles({a.path()}).find("transport", "drum");
  ASSERT_FALSE(other_kind);
  EXPECT_THAT(other_kind.error().detail,
              HasSubstr("; " + a.path() + "/storage/drum.so is one of kind storage; "));
  const auto too_deep = PluginFiles({a.path() + "/storage"}).find("storage", "drum");
  ASSERT_FALSE(too_deep);
  EXPECT_THAT(too_deep.error().detail,
              HasSubstr("; " + a.path() +
                        "/storage/drum.so is there: a folder of plugins has one "
                        "for each kind, storage/drum.so; "));
  const auto nowhere = PluginFiles({a.path() + "/plugns"}).find("storage", "drum");
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().detail, HasSubstr(" in " + a.path() + "/plugns (not there), "));
}

}  // namespace
}  // namespace millrace::kernel
