// Says that it is a transport, and registers a codec.
#include <millrace/system_plugin.h>

#include "../good/echo_codec.h"
#include "../probe.h"

namespace {
class Confused final : public millrace::Plugin {
 public:
  millrace::Result<> start(millrace::Registrar& registrar, millrace::Host& host) override {
    return registrar.add(
        std::make_unique<millrace::probe::EchoCodec>(host.log(), millrace::CompressionId::gzip));
  }
};
}  // namespace

MILLRACE_SYSTEM_PLUGIN(Confused, .kind = "transport",
                       .id = "org.example.transport.registers_other_kind", .version = "0.1.0");
