// A codec as the kernel holds it: with the levels that its plugin has beside it.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <millrace/codec.h>
#include <millrace/codec_levels.h>

namespace millrace::kernel {

/// Every codec of a plugin is held in one. A plugin may have been built without the types that
/// dynamic_cast looks at, so it looks at this.
class LevelledCodec final : public Codec {
 public:
  explicit LevelledCodec(std::unique_ptr<Codec> codec) : codec_(std::move(codec)) {}

  /// `levels` may be nullptr, and outlives this.
  void use(const CodecLevels* levels) noexcept { levels_ = levels; }

  CompressionId id() const noexcept override { return codec_->id(); }
  Result<Buffer> compress(Bytes input) const override { return codec_->compress(input); }
  Result<Buffer> compress_at(int level, Bytes input) const {
    return levels_ ? levels_->compress(id(), input, level) : codec_->compress(input);
  }
  Result<Buffer> decompress(Bytes input, std::size_t output_bytes_max) const override {
    return codec_->decompress(input, output_bytes_max);
  }

 private:
  std::unique_ptr<Codec> codec_;
  const CodecLevels* levels_ = nullptr;
};

/// At the codec's own level where none is given, or where it has no others.
inline Result<Buffer> compress(const Codec& codec, Bytes input, std::optional<int> level) {
  const auto* levelled = level ? dynamic_cast<const LevelledCodec*>(&codec) : nullptr;
  return levelled ? levelled->compress_at(*level, input) : codec.compress(input);
}

}  // namespace millrace::kernel
