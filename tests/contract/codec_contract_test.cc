// The shipped codecs against the contract, the framings that clients write, and batches that real
// clients and brokers wrote.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/batch.h>
#include <millrace/bytes.h>
#include <millrace/testing/codec_contract.h>

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const Codec> shipped(std::string_view name, OptionValues options = {}) {
  return load_codec(MILLRACE_PLUGIN_DIR "/compression/" + std::string(name) + ".so",
                    std::move(options));
}

CodecCase shipped_case(CompressionId id) {
  const std::string name(name_of(id));
  return {name, id, [name] { return shipped(name); }};
}

INSTANTIATE_TEST_SUITE_P(Shipped, CodecContract,
                         ::testing::Values(shipped_case(CompressionId::gzip),
                                           shipped_case(CompressionId::snappy),
                                           shipped_case(CompressionId::lz4),
                                           shipped_case(CompressionId::zstd)),
                         [](const auto& one) { return one.param.name; });

// ---- framings ----

std::string bytes_of(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes += static_cast<char>(value);
  return bytes;
}

std::string be32(std::size_t value) {
  std::string bytes(4, '\0');
  store_be(reinterpret_cast<std::byte*>(bytes.data()), static_cast<std::int32_t>(value));
  return bytes;
}

Result<std::string> open(const Codec& codec, std::string_view block) {
  MR_TRY(const auto opened, codec.decompress(as_bytes(block), 1 << 20));
  return std::string(opened.text());
}

std::string close(const Codec& codec, std::string_view content) {
  return std::string(codec.compress(as_bytes(content))->text());
}

TEST(GzipTest, ReadsAnyHeaderFields) {
  const auto codec = shipped("gzip");
  const auto block = close(*codec, "records");
  constexpr std::size_t header_bytes = 10;
  // FEXTRA, FNAME, FCOMMENT; a time, another system.
  auto decorated = bytes_of({0x1f, 0x8b, 8, 0x04 | 0x08 | 0x10, 1, 2, 3, 4, 0, 11});
  decorated += bytes_of({3, 0, 'a', 'b', 'c'});
  decorated += std::string("name\0", 5) + std::string("comment\0", 8);
  decorated += block.substr(header_bytes);
  EXPECT_EQ(open(*codec, decorated), "records");
}

TEST(GzipTest, ReadsMembersBehindEachOther) {
  const auto codec = shipped("gzip");
  EXPECT_EQ(open(*codec, close(*codec, "one ") + close(*codec, "") + close(*codec, "two")),
            "one two");
}

TEST(GzipTest, ChecksTheContent) {
  const auto codec = shipped("gzip");
  auto block = close(*codec, "records");
  block[block.size() - 8] ^= 1;  // CRC-32
  const auto refused = open(*codec, block);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("gzip: incorrect data check, at byte"));
}

const std::string xerial_header =
    bytes_of({0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1});
// Raw snappy: length, then a literal.
const std::string raw_one = bytes_of({4, 3 << 2, 'o', 'n', 'e', ' '});
const std::string raw_two = bytes_of({3, 2 << 2, 't', 'w', 'o'});

TEST(SnappyTest, ReadsARawBlock) { EXPECT_EQ(open(*shipped("snappy"), raw_one), "one "); }

TEST(SnappyTest, ReadsSeveralFramedBlocks) {
  const auto framed =
      xerial_header + be32(raw_one.size()) + raw_one + be32(raw_two.size()) + raw_two;
  EXPECT_EQ(open(*shipped("snappy"), framed), "one two");
}

TEST(SnappyTest, WritesBlocksThatJavaReads) {
  const auto codec = shipped("snappy");
  const auto block = close(*codec, record_content(100'000));
  ASSERT_TRUE(block.starts_with(xerial_header));
  std::size_t blocks = 0;
  std::string_view rest = std::string_view(block).substr(xerial_header.size());
  while (!rest.empty()) {
    const auto bytes = load_be<std::int32_t>(as_bytes(rest).data());
    const auto opened = open(*codec, rest.substr(4, static_cast<std::size_t>(bytes)));
    ASSERT_TRUE(opened);
    EXPECT_LE(opened->size(), 32 << 10);
    rest.remove_prefix(4 + static_cast<std::size_t>(bytes));
    ++blocks;
  }
  EXPECT_EQ(blocks, 4);
}

TEST(SnappyTest, SaysWhatIsWrongWithTheFraming) {
  const auto codec = shipped("snappy");
  const auto reason = [&](const std::string& block) {
    const auto opened = open(*codec, block);
    return opened ? "none" : opened.error().detail;
  };
  EXPECT_EQ(reason(xerial_header), "snappy: ends within the length of the block at byte 16");
  EXPECT_EQ(reason(xerial_header + be32(100) + raw_one),
            "snappy: the block at byte 16 has 6 bytes, expected 100");
  EXPECT_EQ(reason(xerial_header + be32(-1UZ) + raw_one),
            "snappy: the block at byte 16 has 6 bytes, expected -1");
  auto newer = xerial_header;
  newer.back() = 2;
  EXPECT_EQ(reason(newer + be32(6) + raw_one), "snappy: framing version 2, expected 1");
  // 200 MiB in six bytes: refused before anything is allocated for it.
  const auto boast = bytes_of({0x80, 0x80, 0x80, 0x64, 0, 'x'});
  EXPECT_THAT(reason(boast), HasSubstr("a block of 6 bytes claims to hold 209715200"));
}

constexpr std::size_t lz4_checksum_at = 6;  // behind magic, FLG and BD

TEST(Lz4Test, ReadsTheHeaderChecksumOfOldClients) {
  const auto codec = shipped("lz4");
  auto block = close(*codec, "records");
  ASSERT_EQ(block.substr(4, 3), bytes_of({0x60, 0x40, 0x82}));
  block[lz4_checksum_at] = 0x1a;
  EXPECT_EQ(open(*codec, block), "records");
  block[lz4_checksum_at] = 0x1b;
  const auto refused = open(*codec, block);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "lz4: the header's checksum is 27, expected 130");
}

TEST(Lz4Test, ReadsFramesBehindEachOther) {
  const auto codec = shipped("lz4");
  EXPECT_EQ(open(*codec, close(*codec, "one ") + close(*codec, "two")), "one two");
}

TEST(ZstdTest, ReadsFramesBehindEachOther) {
  const auto codec = shipped("zstd");
  EXPECT_EQ(open(*codec, close(*codec, "one ") + close(*codec, "") + close(*codec, "two")),
            "one two");
}

// A window of 2 GiB, as `zstd --long=31` announces it, around seven bytes.
TEST(ZstdTest, NeedsNoMemoryForTheWindowThatAFrameClaims) {
  const auto frame =
      bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 7 << 3 | 1, 0, 0}) + "records";
  EXPECT_EQ(open(*shipped("zstd"), frame), "records");
}

TEST(CodecOptionsTest, AHigherLevelIsSmaller) {
  const auto content = record_content(1 << 20);
  const auto bytes = [&](std::string_view name, std::int64_t level) {
    return close(*shipped(name, {{"level", level}}), content).size();
  };
  EXPECT_LT(bytes("gzip", 9), bytes("gzip", 1));
  EXPECT_LT(bytes("lz4", 12), bytes("lz4", 0));
  EXPECT_LT(bytes("zstd", 19), bytes("zstd", 1));
}

// ---- what real clients and brokers wrote ----

struct Golden {
  Codecs codecs;
  std::vector<std::shared_ptr<const Codec>> loaded;
  std::vector<std::filesystem::path> logs;

  Golden() {
    for (const auto* name : {"gzip", "snappy", "lz4", "zstd"}) {
      loaded.push_back(shipped(name));
      codecs.add(*loaded.back());
    }
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(MILLRACE_GOLDEN_DIR "/segments")) {
      if (entry.path().extension() == ".log") logs.push_back(entry.path());
    }
  }
};

Buffer read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Buffer::copy_of(std::string(std::istreambuf_iterator<char>(file), {}));
}

/// The records of a batch, opened and counted, closed and opened again.
void check_batch(const Buffer& batch, const Codecs& codecs, std::map<CompressionId, int>& seen) {
  const auto header = read_batch_header(batch);
  ASSERT_TRUE(header) << header.error().detail;
  const auto id = header->compression();
  if (id == CompressionId::none) return;
  const auto records = open_records(*header, batch, codecs, 64 << 20);
  ASSERT_TRUE(records) << records.error().detail;
  int count = 0;
  const auto walked = for_each_record(*header, *records, [&](const RecordView&) {
    ++count;
    return true;
  });
  ASSERT_TRUE(walked) << walked.error().detail;
  EXPECT_EQ(count, header->record_count);

  const auto& codec = *codecs.find(id);
  const auto again = codec.compress(*records);
  ASSERT_TRUE(again) << again.error().detail;
  EXPECT_EQ(codec.decompress(*again, records->size())->text(), records->text());
  ++seen[id];
}

TEST(GoldenCodecTest, OpensEveryCompressedEntry) {
  const Golden golden;
  std::map<CompressionId, int> seen;
  int legacy = 0;
  for (const auto& log : golden.logs) {
    SCOPED_TRACE(log.string());
    auto rest = read_whole(log);
    while (!rest.empty()) {
      const auto head = read_entry_head(rest);
      ASSERT_TRUE(head) << head.error().detail;
      const auto entry = rest.slice(0, head->total_bytes);
      rest = rest.slice(head->total_bytes);
      if (head->magic == 2) {
        check_batch(entry, golden.codecs, seen);
      } else {
        const auto messages = open_legacy_entry(entry, golden.codecs, 64 << 20);
        EXPECT_TRUE(messages) << messages.error().detail;
        ++legacy;
      }
    }
  }
  for (const auto id :
       {CompressionId::gzip, CompressionId::snappy, CompressionId::lz4, CompressionId::zstd}) {
    EXPECT_GT(seen[id], 0) << name_of(id);
  }
  EXPECT_GT(legacy, 0);
}

TEST(GoldenCodecTest, RefusesWhatIsCut) {
  const Golden golden;
  int checked = 0;
  for (const auto& log : golden.logs) {
    SCOPED_TRACE(log.string());
    const auto content = read_whole(log);
    const auto head = read_entry_head(content);
    if (!head || head->magic != 2 || head->total_bytes > 20'000) continue;
    const auto header = read_batch_header(content);
    if (!header || header->compression() == CompressionId::none) continue;
    const auto& codec = *golden.codecs.find(header->compression());
    const auto block = content.slice(batch_header_bytes, head->total_bytes - batch_header_bytes);
    const auto whole = codec.decompress(block, 1 << 20);
    ASSERT_TRUE(whole) << whole.error().detail;
    for (std::size_t bytes = 0; bytes < block.size(); ++bytes) {
      const auto cut = codec.decompress(block.slice(0, bytes).detach(), 1 << 20);
      EXPECT_TRUE(!cut || cut->size() < whole->size()) << bytes << " of " << block.size();
    }
    ++checked;
  }
  EXPECT_GT(checked, 20);
}

}  // namespace
}  // namespace millrace::testing
