#include <millrace/kafka/partitioner.h>

#include <gtest/gtest.h>

namespace millrace::kafka {
namespace {

// The values are those that Kafka's own clients compute.
TEST(PartitionerTest, HashesAsKafkasProducersDo) {
  const auto hash = [](std::string_view text) {
    return static_cast<std::int32_t>(murmur2(as_bytes(text)));
  };
  EXPECT_EQ(hash("21"), -973932308);
  EXPECT_EQ(hash("foobar"), -790332482);
  EXPECT_EQ(hash("a-little-bit-long-string"), -985981536);
  EXPECT_EQ(hash("a-little-bit-longer-string"), -1486304829);
  EXPECT_EQ(hash("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8"), -58897971);
  EXPECT_EQ(hash("abc"), 479470107);
}

TEST(PartitionerTest, PartitionsAreInRange) {
  for (int key = 0; key < 1000; ++key) {
    const auto partition = partition_of(std::as_bytes(std::span(&key, 1)), 7);
    EXPECT_GE(partition, 0);
    EXPECT_LT(partition, 7);
  }
}

}  // namespace
}  // namespace millrace::kafka
