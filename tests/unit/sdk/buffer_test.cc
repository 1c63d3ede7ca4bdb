#include <millrace/buffer.h>

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <millrace/payload.h>
#include <millrace/testing/sim_environment.h>

namespace millrace {
namespace {

TEST(BufferTest, SharesItsBytesWithItsSlices) {
  const auto whole = Buffer::copy_of("hello, world");
  const auto word = whole.slice(7);
  EXPECT_EQ(word.text(), "world");
  EXPECT_EQ(word.data(), whole.data() + 7);
  EXPECT_EQ(whole.slice(0, 5).text(), "hello");
  EXPECT_TRUE(whole.slice(12).empty());
}

TEST(BufferTest, KeepsTheBlockWhileASliceLives) {
  Buffer slice;
  {
    const auto whole = Buffer::copy_of(std::string(1000, 'x') + "tail");
    slice = whole.slice(1000);
  }
  EXPECT_EQ(slice.text(), "tail");
}

TEST(BufferTest, DetachesIntoABlockOfItsOwn) {
  const auto whole = Buffer::copy_of("hello, world");
  const auto copy = whole.slice(0, 5).detach();
  EXPECT_EQ(copy.text(), "hello");
  EXPECT_NE(copy.data(), whole.data());
}

TEST(BufferTest, FindsTheSliceOfAView) {
  const auto whole = Buffer::copy_of("key=value");
  const auto view = whole.bytes().subspan(4);
  EXPECT_EQ(whole.slice_of(view).text(), "value");
}

TEST(BufferTest, AssignsItselfAndMovesOut) {
  auto buffer = Buffer::copy_of("same");
  const auto& same = buffer;
  buffer = same;
  EXPECT_EQ(buffer.text(), "same");
  const auto taken = std::move(buffer);
  EXPECT_EQ(taken.text(), "same");
  EXPECT_TRUE(buffer.empty());  // NOLINT(bugprone-use-after-move): what moving leaves is promised
}

TEST(BufferDeathTest, EndsTheProcessOnASliceBeyondItsEnd) {
  const auto buffer = Buffer::copy_of("four");
  EXPECT_DEATH(static_cast<void>(buffer.slice(5)), "assertion failed");
  EXPECT_DEATH(static_cast<void>(buffer.slice(2, 3)), "assertion failed");
}

TEST(MutableBufferTest, HandsOutWhatIsFilledWhileTheRestIsWritten) {
  MutableBuffer block(16);
  block.append(as_bytes("first"));
  const auto first = block.share(0, 5);
  block.append(as_bytes("second"));
  EXPECT_EQ(first.text(), "first");
  EXPECT_EQ(block.space().size(), 5U);
  const auto all = std::move(block).freeze();
  EXPECT_EQ(all.text(), "firstsecond");
  EXPECT_EQ(all.data(), first.data());
  EXPECT_EQ(block.size(), 0U);  // NOLINT(bugprone-use-after-move): what freezing leaves is promised
}

TEST(MutableBufferTest, IsEmptyWithoutABlock) {
  MutableBuffer none;
  EXPECT_EQ(none.capacity(), 0U);
  EXPECT_TRUE(std::move(none).freeze().empty());
  MutableBuffer zero(0);
  EXPECT_TRUE(std::move(zero).freeze().empty());
}

TEST(MutableBufferTest, GrowsAndKeepsWhatIsFilled) {
  MutableBuffer buffer;
  std::string expected;
  for (std::size_t capacity = 1; capacity <= 64UL << 20; capacity *= 8) {
    buffer.grow(capacity);
    ASSERT_EQ(buffer.capacity(), capacity);
    const auto piece = std::to_string(capacity % 10);
    buffer.append(as_bytes(piece));
    expected += piece;
    buffer.grow(capacity / 2);
    EXPECT_EQ(buffer.capacity(), capacity) << "never shrinks";
  }
  EXPECT_EQ(as_text(buffer.bytes()), expected);
  EXPECT_EQ(std::move(buffer).freeze().text(), expected);
}

TEST(BufferDeathTest, EndsTheProcessWhenABlockGrowsThatOthersSee) {
  MutableBuffer buffer(8);
  buffer.append(as_bytes("shared"));
  const auto view = buffer.share(0, 6);
  EXPECT_DEATH(buffer.grow(16), "owners");
}

TEST(PayloadTest, CountsAndKeepsItsPartsInOrder) {
  Payload payload(Buffer::copy_of("one "));
  payload.add(Buffer());
  Payload more(Buffer::copy_of("two "));
  more.add(Buffer::copy_of("three"));
  payload.add(std::move(more));
  EXPECT_EQ(payload.size(), 13U);
  EXPECT_EQ(payload.parts().size(), 3U);
  EXPECT_EQ(payload.flatten()->text(), "one two three");
}

TEST(PayloadTest, ReadsFileRangesWhenFlattened) {
  testing::SimWorld world(1);
  auto& files = world.add_node("b1").files();
  ASSERT_TRUE(replace_file(files, "/data/x", as_bytes("0123456789")));
  auto file = files.open("/data/x", OpenMode::read);
  ASSERT_TRUE(file);
  Payload payload(Buffer::copy_of("<"));
  payload.add(FileRange{*file, 2, 3});
  payload.add(Buffer::copy_of(">"));
  EXPECT_EQ(payload.flatten()->text(), "<234>");
  Payload beyond;
  beyond.add(FileRange{*file, 8, 3});
  EXPECT_FALSE(beyond.flatten());
}

}  // namespace
}  // namespace millrace
