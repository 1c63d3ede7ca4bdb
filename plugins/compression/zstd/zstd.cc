// Zstandard (RFC 8878) by libzstd.
#include <algorithm>
#include <memory>
#include <string>

#include <zstd.h>
#include <zstd_errors.h>

#include <millrace/codec_levels.h>
#include <millrace/plugin.h>

namespace millrace {
namespace {

using CompressContext = std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)>;
using DecompressContext = std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)>;

// Where the output begins, and the factor by which it grows while it does not fit.
constexpr std::size_t room_min = 1024;
constexpr std::size_t growth = 4;

Error out_of_memory() { return {Errc::overloaded, "zstd: no memory for libzstd's state"}; }

Error corrupt(Bytes input, const char* reason) {
  return {Errc::corrupt,
          std::string("zstd: ") + reason + ", in " + std::to_string(input.size()) + " bytes"};
}

class ZstdCodec final : public Codec {
 public:
  explicit ZstdCodec(int level) : level_(level) {}

  CompressionId id() const noexcept override { return CompressionId::zstd; }

  Result<Buffer> compress(Bytes input) const override { return compress_at(level_, input); }

  static Result<Buffer> compress_at(int level, Bytes input) {
    const CompressContext context(ZSTD_createCCtx(), ZSTD_freeCCtx);
    if (!context) return out_of_memory();
    MutableBuffer output(ZSTD_compressBound(input.size()));
    const auto bytes = ZSTD_compressCCtx(context.get(), output.data(), output.capacity(),
                                         input.data(), input.size(), level);
    if (ZSTD_isError(bytes)) {
      return Error{Errc::internal, std::string("zstd: ") + ZSTD_getErrorName(bytes)};
    }
    output.filled(bytes);
    return std::move(output).freeze();
  }

  // In one call, straight into the output. libzstd's streaming calls would first allocate the
  // window that the frame claims: 128 MiB for a few bytes, whatever the bound.
  Result<Buffer> decompress(Bytes input, std::size_t output_bytes_max) const override {
    if (input.empty()) return corrupt(input, "no frame");
    const DecompressContext context(ZSTD_createDCtx(), ZSTD_freeDCtx);
    if (!context) return out_of_memory();
    auto room = std::min(first_room(input), output_bytes_max);
    while (true) {
      MutableBuffer output(std::max(room, std::size_t{1}));
      const auto bytes =
          ZSTD_decompressDCtx(context.get(), output.data(), room, input.data(), input.size());
      if (!ZSTD_isError(bytes)) {
        output.filled(bytes);
        return std::move(output).freeze();
      }
      if (ZSTD_getErrorCode(bytes) != ZSTD_error_dstSize_tooSmall) {
        return corrupt(input, ZSTD_getErrorName(bytes));
      }
      if (room == output_bytes_max) {
        return Error{Errc::too_large, "zstd: decompressed, it would be larger than " +
                                          std::to_string(output_bytes_max) + " bytes"};
      }
      room = output_bytes_max / growth > room ? room * growth : output_bytes_max;
    }
  }

 private:
  // A frame may say how much it holds, or not; it may also lie. Beginning anew with more room costs
  // at most a third of the last attempt.
  static std::size_t first_room(Bytes input) {
    const auto claimed = ZSTD_getFrameContentSize(input.data(), input.size());
    const auto likely = input.size() * 8;
    const bool says = claimed != ZSTD_CONTENTSIZE_UNKNOWN && claimed != ZSTD_CONTENTSIZE_ERROR;
    return std::max(room_min, says ? std::min<std::size_t>(claimed, likely * 8) : likely);
  }

  int level_;
};

class ZstdPlugin final : public Plugin, public CodecLevels {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    const auto level = static_cast<int>(host.options().integer("level"));
    return registrar.add(std::make_unique<ZstdCodec>(level));
  }
  void* extension(std::string_view id) noexcept override {
    return id == extension_id ? static_cast<CodecLevels*>(this) : nullptr;
  }
  // libzstd takes what is beyond its bounds for the nearest within.
  Result<Buffer> compress(CompressionId, Bytes input, int level) const override {
    return ZstdCodec::compress_at(level, input);
  }
};

constexpr MillraceOption options[] = {
    {"level", MILLRACE_OPTION_INTEGER, nullptr, "3", -131072, 22, nullptr,
     "How hard to try when compressing: 22 is smallest, 1 is fast, below 0 is faster still.", 0},
    {}};

}  // namespace

MILLRACE_PLUGIN(ZstdPlugin, .kind = "compression", .id = "org.millrace.compression.zstd",
                .version = MILLRACE_VERSION, .summary = "Zstandard by libzstd", .options = options);

}  // namespace millrace
