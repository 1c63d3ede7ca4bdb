// The smallest useful plugin: a codec that hands its work to a library, here zlib.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include <zlib.h>

#include <millrace/codec_output.h>
#include <millrace/plugin.h>

namespace {

using namespace millrace;

// zlib counts in 32 bits.
constexpr std::size_t zlib_bytes_max = std::numeric_limits<uInt>::max();

Bytef* zlib_bytes(const std::byte* data) {
  return reinterpret_cast<Bytef*>(const_cast<std::byte*>(data));
}

class DeflateCodec final : public Codec {
 public:
  explicit DeflateCodec(int level) : level_(level) {}

  // Kafka's codecs are gzip 1, snappy 2, lz4 3 and zstd 4. No client sends 7: a codec that replaces
  // one of the four answers its id here.
  CompressionId id() const noexcept override { return CompressionId{7}; }

  Result<Buffer> compress(Bytes input) const override {
    auto bytes = compressBound(input.size());
    MutableBuffer output(bytes);
    const int end = compress2(zlib_bytes(output.data()), &bytes, zlib_bytes(input.data()),
                              input.size(), level_);
    if (end != Z_OK) return Error{Errc::overloaded, "deflate: no memory for zlib's state"};
    output.filled(bytes);
    return std::move(output).freeze();
  }

  // What comes in may be broken or hostile. The output is bounded while it is made: CodecOutput
  // answers Errc::too_large at the first byte beyond the bound.
  Result<Buffer> decompress(Bytes input, std::size_t output_bytes_max) const override {
    if (input.size() > zlib_bytes_max) {
      return Error{Errc::too_large, "deflate: opens at most 4 GiB at once"};
    }
    z_stream stream{};
    if (inflateInit(&stream) != Z_OK) {
      return Error{Errc::overloaded, "deflate: no memory for zlib's state"};
    }
    const std::unique_ptr<z_stream, int (*)(z_streamp)> ended(&stream, inflateEnd);
    stream.next_in = zlib_bytes(input.data());
    stream.avail_in = static_cast<uInt>(input.size());
    CodecOutput output(input.size() * 4, output_bytes_max);
    int state = Z_OK;
    do {
      const auto space = output.space();
      const auto room = static_cast<uInt>(std::min(space.size(), zlib_bytes_max));
      stream.next_out = zlib_bytes(space.data());
      stream.avail_out = room;
      state = inflate(&stream, Z_NO_FLUSH);
      MR_CHECK(output.filled(room - stream.avail_out));
    } while (state == Z_OK);
    if (state != Z_STREAM_END || stream.avail_in > 0) {
      return Error{Errc::corrupt, "deflate: not one whole zlib stream, at byte " +
                                      std::to_string(stream.total_in) + " of " +
                                      std::to_string(input.size())};
    }
    return std::move(output).finish();
  }

 private:
  int level_;
};

class DeflatePlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    const auto level = static_cast<int>(host.options().integer("level"));
    return registrar.add(std::make_unique<DeflateCodec>(level));
  }
};

// What may stand in [compression.deflate] of millrace.toml. The kernel checks it and fills in
// defaults.
constexpr MillraceOption options[] = {
    {"level", MILLRACE_OPTION_INTEGER, nullptr, "6", 1, 9, nullptr,
     "How hard to try when compressing: 1 is fastest, 9 is smallest.", 0},
    {}};

}  // namespace

MILLRACE_PLUGIN(DeflatePlugin, .kind = "compression", .id = "org.example.compression.deflate",
                .version = "0.1.0", .summary = "deflate by zlib", .options = options);
