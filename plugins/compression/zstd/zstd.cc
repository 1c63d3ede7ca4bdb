// Zstandard (RFC 8878) by libzstd.
#include <memory>
#include <string>

#include <zstd.h>

#include <millrace/codec_output.h>
#include <millrace/plugin.h>

namespace millrace {
namespace {

using CompressContext = std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)>;
using DecompressContext = std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)>;

Error out_of_memory() { return {Errc::overloaded, "zstd: no memory for libzstd's state"}; }

Error corrupt(const ZSTD_inBuffer& input, const char* reason) {
  return {Errc::corrupt, std::string("zstd: ") + reason + ", at byte " + std::to_string(input.pos) +
                             " of " + std::to_string(input.size)};
}

class ZstdCodec final : public Codec {
 public:
  explicit ZstdCodec(int level) : level_(level) {}

  CompressionId id() const noexcept override { return CompressionId::zstd; }

  Result<Buffer> compress(Bytes input) const override {
    const CompressContext context(ZSTD_createCCtx(), ZSTD_freeCCtx);
    if (!context) return out_of_memory();
    MutableBuffer output(ZSTD_compressBound(input.size()));
    const auto bytes = ZSTD_compressCCtx(context.get(), output.data(), output.capacity(),
                                         input.data(), input.size(), level_);
    if (ZSTD_isError(bytes)) {
      return Error{Errc::internal, std::string("zstd: ") + ZSTD_getErrorName(bytes)};
    }
    output.filled(bytes);
    return std::move(output).freeze();
  }

  // libzstd refuses windows above 128 MiB, which is what its highest level needs.
  Result<Buffer> decompress(Bytes input, std::size_t output_bytes_max) const override {
    const DecompressContext context(ZSTD_createDCtx(), ZSTD_freeDCtx);
    if (!context) return out_of_memory();
    CodecOutput output(input.size() * 4, output_bytes_max);
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    std::size_t left = 1;  // 0 at the end of a frame; another may follow
    bool has_more = true;
    while (has_more) {
      const auto space = output.space();
      ZSTD_outBuffer out{space.data(), space.size(), 0};
      left = ZSTD_decompressStream(context.get(), &out, &in);
      if (ZSTD_isError(left)) return corrupt(in, ZSTD_getErrorName(left));
      MR_CHECK(output.filled(out.pos));
      const bool output_was_full = out.pos == out.size;
      has_more = in.pos < in.size || (left > 0 && output_was_full);
    }
    if (left > 0) return corrupt(in, "ends in the middle of a frame");
    return std::move(output).finish();
  }

 private:
  int level_;
};

class ZstdPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    const auto level = static_cast<int>(host.options().integer("level"));
    return registrar.add(std::make_unique<ZstdCodec>(level));
  }
};

constexpr MillraceOption options[] = {
    {"level", MILLRACE_OPTION_INTEGER, nullptr, "3", -131072, 22, nullptr,
     "How hard to try when compressing: 22 is smallest, 1 is fast, below 0 is faster still.", 0},
    {}};

}  // namespace

MILLRACE_PLUGIN(ZstdPlugin, .kind = "compression", .id = "org.millrace.compression.zstd",
                .version = "0.1.0", .summary = "Zstandard by libzstd", .options = options);

}  // namespace millrace
