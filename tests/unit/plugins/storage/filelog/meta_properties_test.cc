#include "plugins/storage/filelog/meta_properties.h"

#include <gtest/gtest.h>

namespace millrace::filelog {
namespace {

TEST(MetaPropertiesTest, ReadsBothOfKafkasForms) {
  const auto old = read_meta_properties(
      "#\n#Sun Nov 29 16:38:00 UTC 2026\nbroker.id=3\nversion=0\ncluster.id=abc-_1\n", "path");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->broker_id, 3);
  EXPECT_EQ(old->cluster_id, "abc-_1");
  const auto today = read_meta_properties(
      "node.id = 7\r\ndirectory.id=x\r\nversion=1\r\ncluster.id : abc", "path");
  ASSERT_TRUE(today);
  EXPECT_EQ(today->broker_id, 7);
  EXPECT_EQ(today->cluster_id, "abc");
}

TEST(MetaPropertiesTest, ReadsWhatItWrites) {
  const auto text = write_meta_properties({"abc", 7}, Uuid{{1}});
  const auto read = read_meta_properties(text, "path");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->broker_id, 7);
  EXPECT_EQ(read->cluster_id, "abc");
}

TEST(MetaPropertiesTest, NamesTheLineThatIsWrong) {
  const auto error = [](std::string_view text) {
    return read_meta_properties(text, "path").error().detail;
  };
  EXPECT_EQ(error("version=1\nnode.id=x\n"), "path: line 2: node.id is 'x', no number");
  EXPECT_EQ(
      error("version=2"),
      "path: line 1: version is '2', expected 0 or 1; start the version of the broker that has "
      "written it");
  EXPECT_EQ(error("version=x"), "path: line 1: version is 'x', expected 0 or 1");
  EXPECT_EQ(error("\nnonsense"), "path: line 2: expected 'name=value', found 'nonsense'");
}

TEST(MetaPropertiesTest, ALaterVersionIsNoDamage) {
  EXPECT_EQ(read_meta_properties("version=2", "path").error().code, Errc::incompatible);
  EXPECT_EQ(read_meta_properties("version=x", "path").error().code, Errc::corrupt);
}

}  // namespace
}  // namespace millrace::filelog
