#include <millrace/kafka/wire_writer.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/kafka/wire_reader.h>

namespace millrace::kafka {
namespace {

using testing::HasSubstr;

std::string hex(const Result<Payload>& payload) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  const auto flat = payload->flatten();
  for (const auto byte : flat->bytes()) {
    text += digits[std::to_integer<int>(byte) >> 4];
    text += digits[std::to_integer<int>(byte) & 15];
  }
  return text;
}

TEST(WireWriterTest, WritesBothFormsOfStringsArraysAndNulls) {
  WireWriter out;
  for (const bool flexible : {false, true}) {
    out.set_flexible(flexible);
    out.write(std::string_view("ab"), "text");
    out.write(std::optional<std::string_view>(), "text");
    out.write(std::vector<std::int16_t>{1}, "array");
    out.write(std::optional<std::vector<std::int16_t>>(), "array");
    out.write(Buffer::copy_of("x"), "bytes");
    out.write(std::optional<Buffer>(), "bytes");
    out.write(std::optional<Payload>(), "records");
    out.write(std::optional<Payload>(Payload()), "records");
  }
  EXPECT_EQ(hex(std::move(out).finish()),
            "00026162"
            "ffff"
            "000000010001"
            "ffffffff"
            "0000000178"
            "ffffffff"
            "ffffffff"
            "00000000"
            "036162"
            "00"
            "020001"
            "00"
            "0278"
            "00"
            "00"
            "01");
}

TEST(WireWriterTest, GrowsBeyondItsFirstBlock) {
  WireWriter out(1);
  for (std::int32_t i = 0; i < 1000; ++i) out.write(i);
  EXPECT_EQ(out.size(), 4000U);
  const auto payload = std::move(out).finish();
  const auto bytes = payload->flatten();
  ASSERT_EQ(bytes->size(), 4000U);
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(load_be<std::uint32_t>(bytes->data() + 4 * i), i);
  }
}

TEST(WireWriterTest, SplicesLargeBytesWithoutCopyingThem) {
  const auto large = Buffer::copy_of(std::string(splice_bytes_min, 'x'));
  WireWriter out;
  out.write(std::int32_t{1});
  out.write(large, "large");
  out.write(std::int32_t{2});
  EXPECT_EQ(out.size(), 12 + splice_bytes_min);
  const auto payload = std::move(out).finish();
  ASSERT_EQ(payload->parts().size(), 3U);
  EXPECT_EQ(std::get<Buffer>(payload->parts()[1]).data(), large.data());
}

TEST(WireWriterTest, SplicesFileRangesBetweenSmallFields) {
  WireWriter out;
  out.write(std::int32_t{0});
  Payload records;
  records.add(FileRange{.file = nullptr, .offset = 100, .size = 50});
  records.add(Buffer::copy_of("tail"));
  out.write(records, "records");
  out.write(std::int8_t{7});
  const auto payload = std::move(out).finish_frame();
  ASSERT_TRUE(payload);
  ASSERT_EQ(payload->parts().size(), 4U);
  const auto& head = std::get<Buffer>(payload->parts()[0]);
  EXPECT_EQ(load_be<std::int32_t>(head.data()), 4 + 54 + 1);  // the frame
  EXPECT_EQ(load_be<std::int32_t>(head.data() + 4), 54);      // the field
  EXPECT_EQ(std::get<FileRange>(payload->parts()[1]).size, 50U);
  EXPECT_EQ(std::get<Buffer>(payload->parts()[2]).text(), "tail");
  EXPECT_EQ(payload->size(), 4U + 4 + 54 + 1);
}

TEST(WireWriterTest, MergesUnknownTagsInAscendingOrder) {
  const UnknownTags unknown = {
      {0, Buffer::copy_of("a")}, {2, Buffer::copy_of("b")}, {200, Buffer()}};
  WireWriter out;
  TagWriter tags(out, unknown);
  tags.begin(1);
  out.write(std::int16_t{5});
  tags.end();
  tags.finish();
  EXPECT_EQ(hex(std::move(out).finish()),
            "04"
            "000161"
            "01020005"
            "020162"
            "c80100");
}

TEST(WireWriterTest, ATagLongerThanOneByteOfSizeCanHold) {
  const std::string text(300, 'x');
  WireWriter out(8);
  out.set_flexible(true);
  const UnknownTags none;
  TagWriter tags(out, none);
  tags.begin(0);
  out.write(std::string_view(text), "text");
  tags.end();
  tags.finish();
  const auto payload = std::move(out).finish();
  const auto frame = payload->flatten();
  WireReader in(*frame);
  in.set_flexible(true);
  std::string_view read;
  for (TagReader reader(in); reader.next();) in.read(read, "text");
  EXPECT_TRUE(in.finish());
  EXPECT_EQ(in.left(), 0U);
  EXPECT_EQ(read, text);
}

TEST(WireWriterTest, MoreTagsThanOneByteCanCount) {
  UnknownTags unknown;
  for (std::uint32_t tag = 0; tag < 200; ++tag) unknown.push_back({tag, Buffer::copy_of("v")});
  WireWriter out(8);
  out.write_tags(unknown);
  const auto payload = std::move(out).finish();
  const auto frame = payload->flatten();
  WireReader in(*frame);
  UnknownTags read;
  in.keep_tags(read);
  EXPECT_TRUE(in.finish());
  EXPECT_EQ(read, unknown);
}

TEST(WireWriterTest, NamesTheFieldThatCannotBeWritten) {
  const auto error_of = [](auto write) {
    WireWriter out;
    write(out);
    const auto result = std::move(out).finish();
    return result ? "" : to_string(result.error());
  };
  const std::string text(string_bytes_max + 1, 'x');
  const std::string_view too_long = text;
  EXPECT_THAT(error_of([&](WireWriter& out) { out.write(too_long, "too_long"); }),
              HasSubstr("too_long"));
  EXPECT_THAT(error_of([](WireWriter& out) {
                out.write(std::optional<std::string_view>(), "no_null", false);
              }),
              HasSubstr("no_null"));
  EXPECT_THAT(error_of([](WireWriter& out) {
                out.fail_unsupported("first");
                out.fail_unsupported("second");
              }),
              HasSubstr("first"));
}

}  // namespace
}  // namespace millrace::kafka
