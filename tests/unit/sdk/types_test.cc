#include <millrace/types.h>

#include <set>

#include <gtest/gtest.h>

#include <millrace/testing/sim_random.h>

namespace millrace {
namespace {

TEST(UuidTest, IsWrittenAsKafkaWritesIt) {
  EXPECT_EQ(to_string(Uuid{}), "AAAAAAAAAAAAAAAAAAAAAA");
  EXPECT_TRUE(Uuid{}.is_none());
  // Kafka's id of its own metadata topic: 0, 1.
  Uuid metadata;
  metadata.bytes[15] = 1;
  EXPECT_EQ(to_string(metadata), "AAAAAAAAAAAAAAAAAAAAAQ");
  Uuid full;
  full.bytes.fill(0xff);
  EXPECT_EQ(to_string(full), "_____________________w");
}

TEST(UuidTest, ReadsWhatItWrites) {
  testing::SimRandom random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto id = random.uuid();
    EXPECT_EQ(parse_uuid(to_string(id)), id);
  }
}

TEST(UuidTest, RefusesWhatIsNoId) {
  for (const auto* text :
       {"", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAA+A",
        "AAAAAAAAAAAAAAAAAAAAAB", "AAAAAAAAAAAAAAAAAAAA=="}) {
    EXPECT_FALSE(parse_uuid(text)) << text;
  }
}

TEST(UuidTest, DrawsVersionFourIdsThatDiffer) {
  testing::SimRandom random(1);
  std::set<Uuid> seen;
  for (int i = 0; i < 1000; ++i) {
    const auto id = random.uuid();
    EXPECT_EQ(id.bytes[6] >> 4, 4);
    EXPECT_EQ(id.bytes[8] >> 6, 2);
    EXPECT_TRUE(seen.insert(id).second);
  }
}

TEST(TopicPartitionTest, IsNamedAsItsFolder) {
  EXPECT_EQ(to_string(TopicPartition{"orders-eu", 3}), "orders-eu-3");
}

}  // namespace
}  // namespace millrace
