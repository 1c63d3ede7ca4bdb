#include "kernel/cli/batch_sender.h"

#include <limits>

#include <gtest/gtest.h>

namespace millrace::kernel::cli {
namespace {

TEST(BatchSenderTest, SequencesGoRoundBeforeTheyWouldBeNegative) {
  EXPECT_EQ(sequence_after(0, 10), 10);
  constexpr auto last = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(sequence_after(last, 1), 0);
  EXPECT_EQ(sequence_after(last - 2, 10), 7);
}

TEST(BatchSenderTest, WordsOfTheCommandLineAreThoseOfTheProtocol) {
  EXPECT_EQ(acks_of("1"), 1);
  EXPECT_EQ(acks_of("all"), -1);
  EXPECT_EQ(acks_of("-1"), -1);
  EXPECT_EQ(compression_of("zstd"), CompressionId::zstd);
  EXPECT_EQ(compression_of("none"), CompressionId::none);
}

}  // namespace
}  // namespace millrace::kernel::cli
