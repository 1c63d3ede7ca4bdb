// Where keys belong: Math.abs(key.hashCode()) % partitions of a JVM, and 0 where there is no such
// absolute value. A Kafka broker has the group "static" in partition 38 of 50.
#include <millrace/aggregate.h>

#include <limits>

#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr auto all = std::numeric_limits<std::int32_t>::max();

TEST(PartitionOfKeyTest, IsJavasHashOfAsciiKeys) {
  EXPECT_EQ(partition_of_key("", 50), 0);
  EXPECT_EQ(partition_of_key("g1", 50), 42);
  EXPECT_EQ(partition_of_key("my-group", 50), 12);
  EXPECT_EQ(partition_of_key("static", 50), 38);
  EXPECT_EQ(partition_of_key("console-consumer-12345", 50), 6);
  EXPECT_EQ(partition_of_key("console-consumer-12345", all), 158'455'506);
  // Its hash is the smallest number there is, which has no absolute value.
  EXPECT_EQ(partition_of_key("polygenelubricants", 50), 0);
}

TEST(PartitionOfKeyTest, CountsInUnitsOfUtf16) {
  EXPECT_EQ(partition_of_key("gruppe-ä", 50), 48);
  EXPECT_EQ(partition_of_key("gruppe-ä", all), 673'522'898);
  EXPECT_EQ(partition_of_key("été", 50), 42);
  EXPECT_EQ(partition_of_key("グループ", 50), 20);
  EXPECT_EQ(partition_of_key("\u07ff\u0800\uffff", all), 2'096'190);
  // Beyond the first 65,536 characters there are two units for each.
  EXPECT_EQ(partition_of_key("🎉party", 50), 41);
  EXPECT_EQ(partition_of_key("a😀b", all), 57'849'694);
}

TEST(PartitionOfKeyTest, TakesWhatIsNotUtf8AsJavaReadsIt) {
  const auto replaced = partition_of_key("a\ufffdb", all);
  EXPECT_EQ(partition_of_key("a\xff"
                             "b",
                             all),
            replaced);
  EXPECT_EQ(partition_of_key("a\xc0"
                             "b",
                             all),
            replaced);
  EXPECT_EQ(partition_of_key("a\xf8"
                             "b",
                             all),
            replaced);
}

}  // namespace
}  // namespace millrace
