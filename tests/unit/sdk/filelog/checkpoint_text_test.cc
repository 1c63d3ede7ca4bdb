#include <millrace/filelog/checkpoint_text.h>

#include <gtest/gtest.h>

namespace millrace::filelog {
namespace {

TEST(CheckpointTextTest, AreKafkasText) {
  const std::map<TopicPartition, Offset> offsets{{{"orders", 0}, {17}}, {{"a-b", 12}, {0}}};
  const auto text = write_checkpoint(offsets);
  EXPECT_EQ(text, "0\n2\na-b 12 0\norders 0 17\n");
  const auto read = read_checkpoint(text, "file");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(*read, offsets);
  EXPECT_TRUE(read_checkpoint("0\n0\n", "file"));
}

TEST(CheckpointTextTest, SayWhichLineIsWrong) {
  const auto error_of = [](std::string_view text) {
    const auto read = read_checkpoint(text, "file");
    return read ? "none" : to_string(read.error());
  };
  EXPECT_EQ(error_of("x\n0\n"), "corrupt: file: line 1: expected version 0");
  EXPECT_EQ(
      error_of("1\n0\n"),
      "incompatible: file: line 1: expected version 0, found 1; start the version of the broker "
      "that has written it");
  EXPECT_EQ(error_of("0\nx\n"), "corrupt: file: line 2: expected the number of lines");
  EXPECT_EQ(error_of("0\n2\norders 0 17\n"),
            "corrupt: file: line 4: expected 'topic partition offset', found ''");
  EXPECT_EQ(error_of("0\n1\norders 17\n"),
            "corrupt: file: line 3: expected 'topic partition offset', found 'orders 17'");
}

TEST(CheckpointTextTest, EveryPrefixOfAFileIsRefused) {
  const auto text = write_checkpoint({{{"orders", 0}, {17}}, {{"orders", 1}, {18}}});
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_FALSE(read_checkpoint(text.substr(0, size), "file")) << size;
  }
}

}  // namespace
}  // namespace millrace::filelog
