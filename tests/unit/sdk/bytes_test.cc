#include <millrace/bytes.h>

#include <array>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sdk/src/crc.h"

namespace millrace {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(BytesTest, StoresIntegersBigEndian) {
  std::array<std::byte, 8> space{};
  store_be(space.data(), std::uint32_t{0x01020304});
  EXPECT_EQ(space[0], std::byte{1});
  EXPECT_EQ(space[3], std::byte{4});
  EXPECT_EQ(load_be<std::uint32_t>(space.data()), 0x01020304U);
  store_be(space.data(), std::int64_t{-2});
  EXPECT_EQ(load_be<std::int64_t>(space.data()), -2);
}

struct Varint {
  std::uint64_t value;
  std::vector<std::byte> bytes;
};

// The examples of the Protocol Buffers encoding, which Kafka's varints follow, and the edges.
const Varint varints[] = {
    {0, bytes_of({0x00})},
    {1, bytes_of({0x01})},
    {127, bytes_of({0x7f})},
    {128, bytes_of({0x80, 0x01})},
    {150, bytes_of({0x96, 0x01})},
    {300, bytes_of({0xac, 0x02})},
    {16383, bytes_of({0xff, 0x7f})},
    {0xffffffff, bytes_of({0xff, 0xff, 0xff, 0xff, 0x0f})},
    {UINT64_MAX, bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})},
};

TEST(VarintTest, StoresAndLoadsKnownBytes) {
  for (const auto& [value, bytes] : varints) {
    std::array<std::byte, varlong_bytes_max> space{};
    EXPECT_EQ(store_uvarint(space.data(), value), bytes.size()) << value;
    EXPECT_EQ(std::vector(space.begin(), space.begin() + std::ptrdiff_t(bytes.size())), bytes);
    EXPECT_EQ(uvarint_bytes(value), bytes.size()) << value;
    std::uint64_t loaded = 0;
    EXPECT_EQ(load_uvarint(bytes, loaded), bytes.size()) << value;
    EXPECT_EQ(loaded, value);
  }
}

TEST(VarintTest, RefusesEveryProperPrefix) {
  for (const auto& [value, bytes] : varints) {
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      std::uint64_t loaded = 0;
      EXPECT_EQ(load_uvarint(Bytes(bytes).first(size), loaded), 0U) << value;
    }
  }
}

TEST(VarintTest, LeavesWhatFollowsAlone) {
  const auto bytes = bytes_of({0x96, 0x01, 0xff});
  std::uint32_t loaded = 0;
  EXPECT_EQ(load_uvarint(bytes, loaded), 2U);
  EXPECT_EQ(loaded, 150U);
}

TEST(VarintTest, RefusesWhatDoesNotFitTheType) {
  std::uint32_t narrow = 0;
  EXPECT_EQ(load_uvarint(bytes_of({0xff, 0xff, 0xff, 0xff, 0x1f}), narrow), 0U);
  EXPECT_EQ(load_uvarint(bytes_of({0x80, 0x80, 0x80, 0x80, 0x80, 0x00}), narrow), 0U);
  std::uint64_t wide = 0;
  EXPECT_EQ(
      load_uvarint(bytes_of({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02}), wide),
      0U);
  EXPECT_EQ(load_uvarint(
                bytes_of({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}), wide),
            0U);
}

TEST(ZigzagTest, KeepsSmallNumbersSmall) {
  const std::pair<std::int32_t, std::uint32_t> known[] = {
      {0, 0}, {-1, 1}, {1, 2}, {-2, 3}, {INT32_MAX, UINT32_MAX - 1}, {INT32_MIN, UINT32_MAX}};
  for (const auto& [plain, folded] : known) {
    EXPECT_EQ(zigzag(plain), folded);
    EXPECT_EQ(unzigzag(folded), plain);
  }
  for (const std::int64_t plain : {INT64_MIN, INT64_MAX, std::int64_t{-3}}) {
    EXPECT_EQ(unzigzag(zigzag(plain)), plain);
  }
}

// RFC 3720, B.4.
TEST(ChecksumTest, Crc32cGivesTheVectorsOfTheRfc) {
  std::array<std::byte, 32> bytes{};
  EXPECT_EQ(crc32c(bytes), 0x8a9136aaU);
  bytes.fill(std::byte{0xff});
  EXPECT_EQ(crc32c(bytes), 0x62a8ab43U);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(bytes), 0x46dd794eU);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(31 - i);
  EXPECT_EQ(crc32c(bytes), 0x113fdb5cU);
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283U);
}

TEST(ChecksumTest, Crc32GivesTheCheckValueOfTheStandard) {
  EXPECT_EQ(crc32(as_bytes("123456789")), 0xcbf43926U);
  EXPECT_EQ(crc32({}), 0U);
}

// Every way to the crc tells the same, at every length around its blocks, at any alignment and
// after any bytes before.
TEST(ChecksumTest, AllWaysAgree) {
  std::vector<std::byte> bytes(3 * 3 * 2048 + 64);
  std::minstd_rand random(11);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  std::vector<std::size_t> sizes;
  for (std::size_t size = 0; size < 800; ++size) sizes.push_back(size);
  for (const std::size_t blocks : {std::size_t{3 * 2048}, std::size_t{2 * 3 * 2048}}) {
    for (std::size_t more = 0; more < 32; ++more) sizes.push_back(blocks - 16 + more);
  }
  sizes.push_back(bytes.size() - 7);
  for (const auto size : sizes) {
    const auto from = size % 8;
    const auto part = Bytes(bytes).subspan(from, size);
    const auto before = static_cast<std::uint32_t>(random());
    std::uint32_t expected = before;  // bit by bit, as it is defined
    for (const auto byte : part) {
      expected ^= static_cast<std::uint32_t>(byte);
      for (int bit = 0; bit < 8; ++bit) {
        expected = (expected >> 1) ^ ((expected & 1) != 0 ? 0x82f63b78U : 0U);
      }
    }
    ASSERT_EQ(detail::crc32c_portable(part, before), expected) << size;
#if defined(__x86_64__)
    if (detail::has_crc32c_instruction()) {
      ASSERT_EQ(detail::crc32c_by_instruction(part, before), expected) << size;
    }
    if (detail::has_crc32c_three_way()) {
      ASSERT_EQ(detail::crc32c_three_way(part, before), expected) << size;
    }
#endif
  }
}

// That of old formats: the tables, and folding by carry-less multiplication.
TEST(ChecksumTest, BothWaysOfOldFormatsAgree) {
  std::vector<std::byte> bytes(2000);
  std::minstd_rand random(12);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  for (std::size_t size = 0; size < bytes.size() - 8; ++size) {
    const auto part = Bytes(bytes).subspan(size % 8, size);
    const auto before = static_cast<std::uint32_t>(random());
    std::uint32_t expected = before;
    for (const auto byte : part) {
      expected ^= static_cast<std::uint32_t>(byte);
      for (int bit = 0; bit < 8; ++bit) {
        expected = (expected >> 1) ^ ((expected & 1) != 0 ? 0xedb88320U : 0U);
      }
    }
    ASSERT_EQ(detail::crc32_portable(part, before), expected) << size;
#if defined(__x86_64__)
    if (detail::has_crc32_folding()) {
      ASSERT_EQ(detail::crc32_by_folding(part, before), expected) << size;
    }
#endif
  }
}

TEST(ChecksumTest, GoesOnFromTheBytesBefore) {
  const std::string text = "a text that is longer than eight bytes, and odd";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const auto head = as_bytes(text).first(cut);
    const auto tail = as_bytes(text).subspan(cut);
    EXPECT_EQ(crc32c(tail, crc32c(head)), crc32c(as_bytes(text))) << cut;
    EXPECT_EQ(crc32(tail, crc32(head)), crc32(as_bytes(text))) << cut;
  }
}

}  // namespace
}  // namespace millrace
