// gzip (RFC 1952) by zlib.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include <zlib.h>

#include <millrace/codec_levels.h>
#include <millrace/codec_output.h>
#include <millrace/plugin.h>

namespace millrace {
namespace {

// Added to the window's size, it makes zlib read and write gzip's header and trailer.
constexpr int gzip_format = 16;
constexpr int window_bits = 15 + gzip_format;
constexpr int memory_level = 8;
// zlib counts in 32 bits.
constexpr std::size_t input_bytes_max = std::numeric_limits<uInt>::max();

Bytef* zlib_bytes(const std::byte* data) {
  return reinterpret_cast<Bytef*>(const_cast<std::byte*>(data));
}

uInt zlib_size(std::size_t bytes) { return static_cast<uInt>(std::min(bytes, input_bytes_max)); }

Error out_of_memory() { return {Errc::overloaded, "gzip: no memory for zlib's state"}; }

/// A z_stream that is ended as it was begun.
struct Stream : z_stream {
  explicit Stream(int (*end)(z_streamp)) : z_stream{}, end_(end) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { end_(this); }

 private:
  int (*end_)(z_streamp);
};

Error corrupt(const Stream& stream, Bytes input, const char* reason) {
  return {Errc::corrupt, std::string("gzip: ") + reason + ", at byte " +
                             std::to_string(input.size() - stream.avail_in) + " of " +
                             std::to_string(input.size())};
}

class GzipCodec final : public Codec {
 public:
  explicit GzipCodec(int level) : level_(level) {}

  CompressionId id() const noexcept override { return CompressionId::gzip; }

  Result<Buffer> compress(Bytes input) const override { return compress_at(level_, input); }

  static Result<Buffer> compress_at(int level, Bytes input) {
    if (input.size() > input_bytes_max) {
      return Error{Errc::too_large, "gzip: compresses at most 4 GiB at once"};
    }
    Stream stream(deflateEnd);
    if (deflateInit2(&stream, level, Z_DEFLATED, window_bits, memory_level, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
      return out_of_memory();
    }
    MutableBuffer output(deflateBound(&stream, input.size()));
    stream.next_in = zlib_bytes(input.data());
    stream.avail_in = zlib_size(input.size());
    stream.next_out = zlib_bytes(output.data());
    stream.avail_out = zlib_size(output.capacity());
    const int end = deflate(&stream, Z_FINISH);
    MR_ASSERT(end == Z_STREAM_END);
    output.filled(stream.total_out);
    return std::move(output).freeze();
  }

  Result<Buffer> decompress(Bytes input, std::size_t output_bytes_max) const override {
    if (input.size() > input_bytes_max) {
      return Error{Errc::too_large, "gzip: decompresses at most 4 GiB at once"};
    }
    Stream stream(inflateEnd);
    if (inflateInit2(&stream, window_bits) != Z_OK) return out_of_memory();
    stream.next_in = zlib_bytes(input.data());
    stream.avail_in = zlib_size(input.size());
    CodecOutput output(input.size() * 4, output_bytes_max);
    do {  // one member after the other
      MR_CHECK(inflate_member(stream, input, output));
      inflateReset(&stream);
    } while (stream.avail_in > 0);
    return std::move(output).finish();
  }

 private:
  static Result<> inflate_member(Stream& stream, Bytes input, CodecOutput& output) {
    while (true) {
      const auto space = output.space();
      stream.next_out = zlib_bytes(space.data());
      stream.avail_out = zlib_size(space.size());
      const auto room = stream.avail_out;
      const int state = inflate(&stream, Z_NO_FLUSH);
      MR_CHECK(output.filled(room - stream.avail_out));
      switch (state) {
        case Z_STREAM_END: return {};
        case Z_OK:
        case Z_BUF_ERROR:  // with room left: there is no more input
          if (stream.avail_out > 0) return corrupt(stream, input, "ends in the middle");
          break;
        case Z_MEM_ERROR: return out_of_memory();
        default: return corrupt(stream, input, stream.msg ? stream.msg : "not a gzip stream");
      }
    }
  }

  int level_;
};

class GzipPlugin final : public Plugin, public CodecLevels {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    const auto level = static_cast<int>(host.options().integer("level"));
    return registrar.add(std::make_unique<GzipCodec>(level));
  }
  void* extension(std::string_view id) noexcept override {
    return id == extension_id ? static_cast<CodecLevels*>(this) : nullptr;
  }
  Result<Buffer> compress(CompressionId, Bytes input, int level) const override {
    return GzipCodec::compress_at(std::clamp(level, Z_BEST_SPEED, Z_BEST_COMPRESSION), input);
  }
};

constexpr MillraceOption options[] = {
    {"level", MILLRACE_OPTION_INTEGER, nullptr, "6", 1, 9, nullptr,
     "How hard to try when compressing: 1 is fastest, 9 is smallest.", 0},
    {}};

}  // namespace

MILLRACE_PLUGIN(GzipPlugin, .kind = "compression", .id = "org.millrace.compression.gzip",
                .version = MILLRACE_VERSION, .summary = "gzip by zlib", .options = options);

}  // namespace millrace
