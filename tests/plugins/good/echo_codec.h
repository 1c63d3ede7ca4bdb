// A codec that changes nothing and tells the log when it goes.
#pragma once

#include <string>

#include <millrace/codec.h>
#include <millrace/plugin.h>

namespace millrace::probe {

class EchoCodec final : public Codec {
 public:
  EchoCodec(const Log& log, CompressionId id) : log_(log), id_(id) {}
  ~EchoCodec() override { log_.info("codec destroyed"); }
  EchoCodec(const EchoCodec&) = delete;
  EchoCodec& operator=(const EchoCodec&) = delete;

  CompressionId id() const noexcept override { return id_; }
  Result<Buffer> compress(Bytes input) const override { return Buffer::copy_of(input); }
  Result<Buffer> decompress(Bytes input, std::size_t) const override {
    return Buffer::copy_of(input);
  }

 private:
  const Log& log_;
  CompressionId id_;
};

}  // namespace millrace::probe
