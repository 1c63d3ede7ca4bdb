// LZ4 frames by liblz4.
#include <memory>
#include <string>

#include <lz4frame.h>

#include <millrace/codec_levels.h>
#include <millrace/codec_output.h>
#include <millrace/plugin.h>

#include "frame_header.h"

namespace millrace {
namespace {

using DecompressContext = std::unique_ptr<LZ4F_dctx, decltype(&LZ4F_freeDecompressionContext)>;

Error corrupt(const std::string& reason) { return {Errc::corrupt, "lz4: " + reason}; }

/// Decompresses frames into one output.
class Decompressor {
 public:
  Decompressor(LZ4F_dctx& context, CodecOutput& output) : context_(context), output_(output) {}

  /// Takes the frame at the front of `input` off it.
  Result<> frame(Bytes& input) {
    MR_TRY(const auto header, read_lz4_frame_header(input));
    auto head = header.view();
    MR_TRY(auto left, blocks(head));
    MR_ASSERT(left > 0 && head.empty());
    input = input.subspan(header.size);
    MR_TRY(left, blocks(input));
    if (left > 0) return corrupt("ends in the middle of a frame");
    return {};
  }

 private:
  /// Goes on until the frame or the input ends; 0 when it is the frame.
  Result<std::size_t> blocks(Bytes& input) {
    while (true) {
      const auto space = output_.space();
      auto written = space.size();
      auto read = input.size();
      const auto left =
          LZ4F_decompress(&context_, space.data(), &written, input.data(), &read, nullptr);
      if (LZ4F_isError(left)) {
        return corrupt(std::string(LZ4F_getErrorName(left)) + ", in the last " +
                       std::to_string(input.size()) + " bytes");
      }
      input = input.subspan(read);
      MR_CHECK(output_.filled(written));
      const bool output_was_full = written == space.size();
      if (left == 0 || (input.empty() && !output_was_full)) return left;
    }
  }

  LZ4F_dctx& context_;
  CodecOutput& output_;
};

class Lz4Codec final : public Codec {
 public:
  explicit Lz4Codec(int level) : level_(level) {}

  CompressionId id() const noexcept override { return CompressionId::lz4; }

  Result<Buffer> compress(Bytes input) const override { return compress_at(level_, input); }

  static Result<Buffer> compress_at(int level, Bytes input) {
    const auto preferences = preferences_of(level);
    MutableBuffer output(LZ4F_compressFrameBound(input.size(), &preferences));
    const auto bytes = LZ4F_compressFrame(output.data(), output.capacity(), input.data(),
                                          input.size(), &preferences);
    if (LZ4F_isError(bytes)) {
      return Error{Errc::internal, std::string("lz4: ") + LZ4F_getErrorName(bytes)};
    }
    output.filled(bytes);
    return std::move(output).freeze();
  }

  Result<Buffer> decompress(Bytes input, std::size_t output_bytes_max) const override {
    LZ4F_dctx* created = nullptr;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&created, LZ4F_VERSION))) {
      return Error{Errc::overloaded, "lz4: no memory for liblz4's state"};
    }
    const DecompressContext context(created, LZ4F_freeDecompressionContext);
    CodecOutput output(input.size() * 4, output_bytes_max);
    Decompressor decompressor(*context, output);
    do {
      MR_CHECK(decompressor.frame(input));
    } while (!input.empty());
    return std::move(output).finish();
  }

 private:
  static LZ4F_preferences_t preferences_of(int level) {
    LZ4F_preferences_t preferences{};
    // Kafka's Java client reads frames of independent blocks alone.
    preferences.frameInfo.blockMode = LZ4F_blockIndependent;
    preferences.frameInfo.blockSizeID = LZ4F_max64KB;
    preferences.compressionLevel = level;
    return preferences;
  }

  int level_;
};

class Lz4Plugin final : public Plugin, public CodecLevels {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    const auto level = static_cast<int>(host.options().integer("level"));
    return registrar.add(std::make_unique<Lz4Codec>(level));
  }
  void* extension(std::string_view id) noexcept override {
    return id == extension_id ? static_cast<CodecLevels*>(this) : nullptr;
  }
  // liblz4 takes what is above its own highest for that.
  Result<Buffer> compress(CompressionId, Bytes input, int level) const override {
    return Lz4Codec::compress_at(level, input);
  }
};

constexpr MillraceOption options[] = {
    {"level", MILLRACE_OPTION_INTEGER, nullptr, "0", 0, 12, nullptr,
     "How hard to try when compressing: 0 is fastest, 12 is smallest.", 0},
    {}};

}  // namespace

MILLRACE_PLUGIN(Lz4Plugin, .kind = "compression", .id = "org.millrace.compression.lz4",
                .version = MILLRACE_VERSION, .summary = "LZ4 frames by liblz4", .options = options);

}  // namespace millrace
