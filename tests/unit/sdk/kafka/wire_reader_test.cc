#include <millrace/kafka/wire_reader.h>

#include <initializer_list>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kafka {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Buffer frame_of(std::initializer_list<int> values) {
  MutableBuffer bytes(values.size());
  for (const int value : values) {
    bytes.space()[0] = std::byte(value);
    bytes.filled(1);
  }
  return std::move(bytes).freeze();
}

std::string error_of(const WireReader& in) {
  const auto result = in.finish();
  return result ? "" : result.error().detail;
}

TEST(WireReaderTest, ReadsBigEndianIntegers) {
  WireReader in(
      frame_of({0xff, 0x01, 0x02, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 0, 0, 0, 1, 0, 0xff, 0xff}));
  std::int8_t a = 0;
  std::int16_t b = 0;
  std::int32_t c = 0;
  std::int64_t d = 0;
  std::uint16_t e = 0;
  in.read(a, "a");
  in.read(b, "b");
  in.read(c, "c");
  in.read(d, "d");
  in.read(e, "e");
  EXPECT_EQ(a, -1);
  EXPECT_EQ(b, 0x102);
  EXPECT_EQ(c, -2);
  EXPECT_EQ(d, 256);
  EXPECT_EQ(e, 0xffff);
  EXPECT_TRUE(in.finish());
  EXPECT_EQ(in.left(), 0U);
}

TEST(WireReaderTest, NamesTheFirstFieldThatDoesNotFitAndRunsOnEmptyInput) {
  WireReader in(frame_of({0, 0, 0, 1, 0, 0}));
  std::int32_t fits = 0;
  std::int32_t fetch_offset = 7;
  std::int16_t later = 7;
  in.read(fits, "fits");
  in.read(fetch_offset, "fetch_offset");
  in.read(later, "later");
  EXPECT_EQ(fits, 1);
  EXPECT_EQ(fetch_offset, 7);
  EXPECT_EQ(later, 7);
  EXPECT_EQ(in.left(), 0U);
  ASSERT_FALSE(in.finish());
  EXPECT_EQ(in.finish().error().code, Errc::corrupt);
  EXPECT_EQ(error_of(in), "truncated or malformed field fetch_offset at byte 4");
}

TEST(WireReaderTest, StringsAreViewsAndBytesAreSlicesOfTheFrame) {
  const auto frame = frame_of({0, 2, 'h', 'i', 0, 0, 0, 1, 'x'});
  WireReader in(frame);
  std::string_view text;
  Buffer bytes;
  in.read(text, "text");
  in.read(bytes, "bytes");
  EXPECT_EQ(text, "hi");
  EXPECT_EQ(bytes.text(), "x");
  EXPECT_EQ(static_cast<const void*>(text.data()), frame.data() + 2);
  EXPECT_EQ(bytes.data(), frame.data() + 8);
}

TEST(WireReaderTest, TellsNullFromEmptyInBothForms) {
  WireReader in(frame_of({0xff, 0xff, 0, 0, 0, 1}));
  std::optional<std::string_view> null = "x";
  std::optional<std::string_view> empty;
  in.read(null, "null");
  in.read(empty, "empty");
  EXPECT_FALSE(null);
  EXPECT_EQ(empty, "");
  in.set_flexible(true);
  in.read(null, "null");
  in.read(empty, "empty");
  EXPECT_FALSE(null);
  EXPECT_EQ(empty, "");
  EXPECT_TRUE(in.finish());
}

TEST(WireReaderTest, RefusesNullWhereTheVersionHasNone) {
  for (const bool flexible : {false, true}) {
    const auto frame = flexible ? frame_of({0}) : frame_of({0xff, 0xff, 0xff, 0xff});
    const auto refuses = [&](auto value, auto... nullable) {
      WireReader in(frame);
      in.set_flexible(flexible);
      in.read(value, "value", nullable...);
      return error_of(in).starts_with("truncated or malformed field value");
    };
    EXPECT_TRUE(refuses(std::string_view()));
    EXPECT_TRUE(refuses(Buffer()));
    EXPECT_TRUE(refuses(Payload()));
    EXPECT_TRUE(refuses(std::vector<std::int32_t>()));
    EXPECT_TRUE(refuses(std::optional<std::string_view>(), false));
    EXPECT_TRUE(refuses(std::optional<Buffer>(), false));
    EXPECT_TRUE(refuses(std::optional<std::vector<std::int32_t>>(), false));
  }
}

TEST(WireReaderTest, RefusesLengthsBeyondTheFrame) {
  std::string_view text;
  WireReader longer(frame_of({0, 3, 'h', 'i'}));
  longer.read(text, "text");
  EXPECT_THAT(error_of(longer), HasSubstr("text"));

  Buffer bytes;
  WireReader largest(frame_of({0x7f, 0xff, 0xff, 0xff, 1}));
  largest.read(bytes, "bytes");
  EXPECT_THAT(error_of(largest), HasSubstr("bytes"));

  WireReader compact(frame_of({0xff, 0xff, 0xff, 0xff, 0x0f, 1}));
  compact.set_flexible(true);
  compact.read(bytes, "bytes");
  EXPECT_THAT(error_of(compact), HasSubstr("bytes"));
}

TEST(WireReaderTest, RefusesNegativeLengthsOtherThanNull) {
  std::optional<std::string_view> text;
  WireReader string(frame_of({0xff, 0xfe, 'x'}));
  string.read(text, "text");
  EXPECT_FALSE(string.ok());

  std::optional<std::vector<std::int8_t>> values;
  WireReader array(frame_of({0x80, 0, 0, 0, 'x'}));
  array.read(values, "values");
  EXPECT_FALSE(array.ok());
}

TEST(WireReaderTest, RefusesCompactStringsLongerThanAnyOldOne) {
  MutableBuffer frame(string_bytes_max + 4);
  frame.filled(store_uvarint(frame.data(), string_bytes_max + 2));
  while (frame.size() < frame.capacity()) {
    frame.space()[0] = std::byte('x');
    frame.filled(1);
  }
  WireReader in(std::move(frame).freeze());
  in.set_flexible(true);
  std::string_view text;
  in.read(text, "text");
  EXPECT_FALSE(in.ok());
}

TEST(WireReaderTest, ChecksArrayCountsBeforeMakingElements) {
  std::vector<std::int64_t> values;
  WireReader many(frame_of({0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1}));
  many.read(values, "values");
  EXPECT_EQ(values.capacity(), 0U);
  EXPECT_EQ(error_of(many), "truncated or malformed field values at byte 4");

  WireReader one_too_many(frame_of({0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}));
  one_too_many.read(values, "values");
  EXPECT_EQ(values.capacity(), 0U);
  EXPECT_FALSE(one_too_many.ok());
}

TEST(WireReaderTest, BoundsTheMemoryOfAFrameOfEmptyElements) {
  struct Large {
    std::byte bytes[4096];
  };
  MutableBuffer frame(decoded_bytes_max / sizeof(Large) + 100);
  std::memset(frame.data(), 0, frame.capacity());
  frame.filled(frame.capacity());
  const auto count = static_cast<std::int32_t>(decoded_bytes_max / sizeof(Large) + 1);
  store_be(frame.data(), count);
  WireReader in(std::move(frame).freeze());
  std::vector<Large> values;
  in.elements(values, 1, "values");
  EXPECT_TRUE(values.empty());
  EXPECT_FALSE(in.ok());
}

TEST(WireReaderTest, ReadsArraysOfStrings) {
  WireReader in(frame_of({3, 2, 'a', 1}));
  in.set_flexible(true);
  std::vector<std::string_view> values;
  in.read(values, "values");
  EXPECT_TRUE(in.finish());
  EXPECT_THAT(values, ElementsAre("a", ""));
}

TEST(WireReaderTest, RefusesVarintsThatAreTooLong) {
  for (const auto& frame :
       {frame_of({0x80, 0x80, 0x80, 0x80, 0x80, 0x01}), frame_of({0xff, 0xff, 0xff, 0xff, 0x1f}),
        frame_of({0x80}), frame_of({})}) {
    WireReader in(frame);
    std::uint32_t value = 0;
    in.read_uvarint(value, "value");
    EXPECT_FALSE(in.ok());
  }
  WireReader in(frame_of({0xff, 0xff, 0xff, 0xff, 0x0f}));
  std::uint32_t value = 0;
  in.read_uvarint(value, "value");
  EXPECT_EQ(value, 0xffffffffU);
  EXPECT_TRUE(in.finish());
}

TEST(WireReaderTest, MarksOfNullableStructsDifferInsideTags) {
  const auto read = [](int mark, bool tagged) {
    WireReader in(frame_of({mark}));
    const bool present = in.present("struct", tagged);
    return in.ok() ? (present ? "present" : "null") : "malformed";
  };
  EXPECT_STREQ(read(1, false), "present");
  EXPECT_STREQ(read(0xff, false), "null");
  EXPECT_STREQ(read(0, false), "malformed");
  EXPECT_STREQ(read(1, true), "present");
  EXPECT_STREQ(read(0, true), "null");
  EXPECT_STREQ(read(0xff, true), "malformed");
}

TEST(WireReaderTest, KeepsUnknownTags) {
  WireReader in(frame_of({2, 1, 2, 'a', 'b', 0x80, 0x01, 0, 9}));
  UnknownTags unknown;
  in.keep_tags(unknown);
  ASSERT_TRUE(in.finish());
  ASSERT_EQ(unknown.size(), 2U);
  EXPECT_EQ(unknown[0].tag, 1U);
  EXPECT_EQ(unknown[0].value.text(), "ab");
  EXPECT_EQ(unknown[1].tag, 128U);
  EXPECT_TRUE(unknown[1].value.empty());
  EXPECT_EQ(in.left(), 1U);
}

TEST(WireReaderTest, AKnownTagMustFillItsSizeExactly) {
  for (const int size : {3, 4, 5}) {
    WireReader in(frame_of({1, 0, size, 0, 0, 0, 5, 0, 0}));
    std::int32_t value = 0;
    for (TagReader tags(in); tags.next();) in.read(value, "value");
    EXPECT_EQ(in.ok(), size == 4) << size;
  }
}

TEST(WireReaderTest, RefusesTagsOutOfOrderRepeatedOrBeyondTheFrame) {
  for (const auto& frame : {frame_of({2, 5, 0, 4, 0}), frame_of({2, 5, 0, 5, 0}),
                            frame_of({1, 5, 3, 'a', 'b'}), frame_of({2, 5, 0}), frame_of({1})}) {
    WireReader in(frame);
    UnknownTags unknown;
    in.keep_tags(unknown);
    EXPECT_FALSE(in.ok());
  }
}

TEST(WireReaderTest, ManyAnnouncedTagsCostNothing) {
  WireReader in(frame_of({0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0}));
  UnknownTags unknown;
  in.keep_tags(unknown);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(unknown.size(), 1U);
}

}  // namespace
}  // namespace millrace::kafka
