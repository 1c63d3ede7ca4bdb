// Snappy by libsnappy, in the two framings that Kafka clients use:
//   raw      one block
//   xerial   16 bytes of header, then blocks, each behind its length; what snappy-java writes
// Both are read; xerial is written, which every client reads.
#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include <snappy.h>

#include <millrace/bytes.h>
#include <millrace/codec_output.h>
#include <millrace/plugin.h>

namespace millrace {
namespace {

constexpr std::array<unsigned char, 8> xerial_magic{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};
constexpr std::int32_t xerial_version = 1;
constexpr std::size_t xerial_header_bytes = 16;  // magic, version, oldest version that can read it
constexpr std::size_t length_bytes = 4;
constexpr std::size_t xerial_block_bytes_max = 32 << 10;
// The densest element of the format: three bytes that stand for 64.
constexpr std::size_t expansion_max = 22;

const char* chars(Bytes bytes) { return reinterpret_cast<const char*>(bytes.data()); }

Error corrupt(const std::string& reason) { return {Errc::corrupt, "snappy: " + reason}; }

bool is_xerial(Bytes input) {
  return input.size() >= xerial_magic.size() &&
         std::ranges::equal(input.first(xerial_magic.size()),
                            std::as_bytes(std::span(xerial_magic)));
}

Result<> append_block(CodecOutput& output, Bytes block) {
  std::size_t bytes = 0;
  if (!snappy::GetUncompressedLength(chars(block), block.size(), &bytes)) {
    return corrupt("the block's length is malformed");
  }
  if (bytes > block.size() * expansion_max) {
    return corrupt("a block of " + std::to_string(block.size()) + " bytes claims to hold " +
                   std::to_string(bytes));
  }
  MR_TRY(const auto space, output.space_for(bytes));
  if (!snappy::RawUncompress(chars(block), block.size(), reinterpret_cast<char*>(space.data()))) {
    return corrupt("a block of " + std::to_string(block.size()) + " bytes is malformed");
  }
  return output.filled(bytes);
}

Result<> append_xerial(CodecOutput& output, Bytes input) {
  if (input.size() < xerial_header_bytes) return corrupt("ends in the header of its framing");
  const auto compatible = load_be<std::int32_t>(input.data() + xerial_magic.size() + length_bytes);
  if (compatible > xerial_version) {
    return corrupt("framing version " + std::to_string(compatible) + ", expected 1");
  }
  auto rest = input.subspan(xerial_header_bytes);
  do {
    const auto at = " at byte " + std::to_string(input.size() - rest.size());
    if (rest.size() < length_bytes) return corrupt("ends within the length of the block" + at);
    const auto length = load_be<std::int32_t>(rest.data());
    rest = rest.subspan(length_bytes);
    if (length <= 0 || static_cast<std::size_t>(length) > rest.size()) {
      return corrupt("the block" + at + " has " + std::to_string(rest.size()) +
                     " bytes, expected " + std::to_string(length));
    }
    MR_CHECK(append_block(output, rest.first(static_cast<std::size_t>(length))));
    rest = rest.subspan(static_cast<std::size_t>(length));
  } while (!rest.empty());
  return {};
}

class SnappyCodec final : public Codec {
 public:
  CompressionId id() const noexcept override { return CompressionId::snappy; }

  // At least one block, so that a header alone is known to be cut short.
  Result<Buffer> compress(Bytes input) const override {
    const auto blocks = input.size() / xerial_block_bytes_max + 1;
    const auto block_bytes_max = snappy::MaxCompressedLength(xerial_block_bytes_max);
    MutableBuffer output(xerial_header_bytes + blocks * (length_bytes + block_bytes_max));
    output.append(std::as_bytes(std::span(xerial_magic)));
    for (int i = 0; i < 2; ++i) {
      store_be(output.space().data(), xerial_version);
      output.filled(length_bytes);
    }
    do {
      const auto part = input.first(std::min(input.size(), xerial_block_bytes_max));
      input = input.subspan(part.size());
      std::size_t bytes = 0;
      const auto space = output.space();
      snappy::RawCompress(chars(part), part.size(),
                          reinterpret_cast<char*>(space.data() + length_bytes), &bytes);
      store_be(space.data(), static_cast<std::int32_t>(bytes));
      output.filled(length_bytes + bytes);
    } while (!input.empty());
    return std::move(output).freeze();
  }

  Result<Buffer> decompress(Bytes input, std::size_t output_bytes_max) const override {
    CodecOutput output(input.size() * 2, output_bytes_max);
    MR_CHECK(is_xerial(input) ? append_xerial(output, input) : append_block(output, input));
    return std::move(output).finish();
  }
};

class SnappyPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host&) override {
    return registrar.add(std::make_unique<SnappyCodec>());
  }
};

}  // namespace

MILLRACE_PLUGIN(SnappyPlugin, .kind = "compression", .id = "org.millrace.compression.snappy",
                .version = MILLRACE_VERSION, .summary = "Snappy, raw and in snappy-java's framing");

}  // namespace millrace
