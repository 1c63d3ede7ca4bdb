#include <millrace/kafka/frame_reader.h>

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/bytes.h>

namespace millrace::kafka {
namespace {

std::string framed(std::string_view text) {
  std::string frame(4, '\0');
  store_be(reinterpret_cast<std::byte*>(frame.data()), static_cast<std::int32_t>(text.size()));
  return frame.append(text);
}

/// Feeds `bytes` in pieces of at most `piece`, and returns the frames that came out.
std::vector<std::string> cut(FrameReader& reader, std::string_view bytes, std::size_t piece) {
  std::vector<std::string> frames;
  while (!bytes.empty()) {
    const auto space = reader.space();
    EXPECT_FALSE(space.empty());
    const auto size = std::min({piece, bytes.size(), space.size()});
    std::memcpy(space.data(), bytes.data(), size);
    reader.filled(size);
    bytes.remove_prefix(size);
    while (true) {
      const auto frame = reader.next();
      EXPECT_TRUE(frame);
      if (!frame || !*frame) break;
      frames.emplace_back((*frame)->text());
    }
  }
  return frames;
}

TEST(FrameReaderTest, CutsFramesHoweverTheBytesArrive) {
  std::string bytes;
  std::vector<std::string> expected;
  for (const std::size_t size : {0, 1, 100, 4096, 65536, 65532, 70000, 3, 200000}) {
    expected.emplace_back(size, static_cast<char>('a' + expected.size()));
    bytes += framed(expected.back());
  }
  for (const std::size_t piece : {1, 3, 1000, 65536, 1000000}) {
    FrameReader reader(1 << 20);
    EXPECT_EQ(cut(reader, bytes, piece), expected) << piece;
  }
}

TEST(FrameReaderTest, FramesOutliveTheReader) {
  Buffer frame;
  {
    FrameReader reader(100);
    const auto bytes = framed("hello");
    std::memcpy(reader.space().data(), bytes.data(), bytes.size());
    reader.filled(bytes.size());
    frame = **reader.next();
  }
  EXPECT_EQ(frame.text(), "hello");
}

TEST(FrameReaderTest, RefusesSizesBeyondItsBound) {
  for (const std::uint32_t size : {101U, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
    FrameReader reader(100);
    store_be(reader.space().data(), size);
    reader.filled(4);
    const auto frame = reader.next();
    ASSERT_FALSE(frame);
    EXPECT_EQ(frame.error().code, size > 0x7fffffff ? Errc::corrupt : Errc::too_large);
  }
}

TEST(FrameReaderTest, AnAnnouncedFrameGetsMemoryOnlyAsItArrives) {
  FrameReader reader(std::size_t{1} << 30);
  store_be(reader.space().data(), std::int32_t{1} << 30);
  reader.filled(4);
  EXPECT_LE(reader.space().size(), FrameReader::frame_bytes_at_once);
  EXPECT_EQ(reader.frame_bytes(), std::size_t{1} << 30);
}

TEST(FrameReaderTest, ALargeFrameArrivesInSteps) {
  const std::string text(5 << 20, 'x');
  FrameReader reader(std::size_t{1} << 30);
  EXPECT_EQ(cut(reader, framed(text) + framed("next"), 1 << 16),
            (std::vector<std::string>{text, "next"}));
}

}  // namespace
}  // namespace millrace::kafka
