#include "kernel/config/text.h"

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

TEST(TextTest, EditDistanceCountsInsertRemoveReplaceAndSwap) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("id", ""), 2U);
  EXPECT_EQ(edit_distance("id", "idd"), 1U);
  EXPECT_EQ(edit_distance("storage", "stroage"), 1U);
  EXPECT_EQ(edit_distance("listen", "lisen"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(TextTest, NearestIsASlipAndNotAnyWord) {
  EXPECT_EQ(nearest("memroy", {"memory", "filelog"}), "memory");
  EXPECT_EQ(nearest("retention.mss", {"retention.bytes", "retention.ms"}), "retention.ms");
  EXPECT_EQ(nearest("zookeeper", {"standalone"}), std::nullopt);
  EXPECT_EQ(nearest("x", {"id"}), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
  EXPECT_EQ(nearest(std::string(1'000'000, 'x'), {"memory"}), std::nullopt);
  EXPECT_EQ(nearest_hint("memroy", {"memory"}), "; nearest known: memory");
  EXPECT_EQ(nearest_hint("x", {"memory"}), "");
}

TEST(TextTest, Concat) {
  EXPECT_EQ(concat("a ", 1, std::string(" b "), std::uint64_t{18446744073709551615U}, -3),
            "a 1 b 18446744073709551615-3");
  EXPECT_EQ(joined({"a", "b"}), "a, b");
  EXPECT_EQ(joined({}), "");
  EXPECT_EQ(number_text(0.1), "0.1");
}

}  // namespace
}  // namespace millrace::kernel
