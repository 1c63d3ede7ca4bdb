// Starts, and offers nothing.
#include "../probe.h"

namespace {
class Idle final : public millrace::Plugin {
 public:
  millrace::Result<> start(millrace::Registrar&, millrace::Host&) override { return {}; }
};
}  // namespace

MILLRACE_PLUGIN(Idle, .kind = "compression", .id = "org.example.compression.registers_nothing",
                .version = "0.1.0");
