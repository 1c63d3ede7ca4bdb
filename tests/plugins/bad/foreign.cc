// Built by another toolchain, as a plugin would be: its file says so.
#include "../probe.h"

namespace {

class ForeignPlugin final : public millrace::Plugin {
 public:
  millrace::Result<> start(millrace::Registrar&, millrace::Host&) override { return {}; }
};

}  // namespace

MILLRACE_PLUGIN(ForeignPlugin, .kind = "compression", .id = "org.example.compression.foreign",
                .version = "0.1.0", .toolchain = "libcxx;std=23;san=none");
