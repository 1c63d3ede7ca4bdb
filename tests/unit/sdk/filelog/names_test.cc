#include <millrace/filelog/names.h>

#include <gtest/gtest.h>

namespace millrace::filelog {
namespace {

TEST(NamesTest, FilesAreNamedBy20Digits) {
  EXPECT_EQ(offset_name({17}, log_suffix), "00000000000000000017.log");
  EXPECT_EQ(offset_name({INT64_MAX}, log_suffix), "09223372036854775807.log");
  const auto parsed = parse_offset_name("00000000000000000017.log.swap");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->offset, Offset{17});
  EXPECT_EQ(parsed->suffix, ".log.swap");
}

TEST(NamesTest, OtherFilesAreNotOurs) {
  for (const auto* name :
       {"", "17.log", "0000000000000000001x.log", "00000000000000000017",
        "99999999999999999999.log", "00000000000000000017log", "leader-epoch-checkpoint"}) {
    EXPECT_FALSE(parse_offset_name(name)) << name;
  }
}

TEST(NamesTest, PartitionFoldersAreTopicAndNumber) {
  const auto parsed = parse_partition_folder("orders-eu.west-12");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->topic, "orders-eu.west");
  EXPECT_EQ(parsed->partition, 12);
  for (const auto* name : {"orders", "-0", "orders-", "orders-x", "orders-01", "orders-0.x-delete",
                           "orders-99999999999", "orders-+1"}) {
    EXPECT_FALSE(parse_partition_folder(name)) << name;
  }
}

TEST(NamesTest, DoomedFoldersAreKnownByTheirSuffix) {
  const auto name = doomed_folder({"orders", 3}, Uuid{{0xab, 1}});
  EXPECT_EQ(name, "orders-3.ab010000000000000000000000000000-delete");
  EXPECT_TRUE(is_doomed_folder(name));
  EXPECT_FALSE(parse_partition_folder(name));
  const auto longest = doomed_folder({std::string(249, 't'), 3}, Uuid{});
  EXPECT_LE(longest.size(), 255u);
  EXPECT_TRUE(is_doomed_folder(longest));
  EXPECT_FALSE(is_doomed_folder("my-delete"));
  EXPECT_FALSE(is_doomed_folder("orders.0123-delete"));
}

}  // namespace
}  // namespace millrace::filelog
