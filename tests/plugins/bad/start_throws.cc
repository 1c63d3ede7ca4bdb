// start() throws what its instance is named after.
#include <stdexcept>

#include "../probe.h"

namespace {
class Throwing final : public millrace::Plugin {
 public:
  millrace::Result<> start(millrace::Registrar&, millrace::Host& host) override {
    if (host.instance() == "number") throw 42;
    throw std::runtime_error("the tape tore");
  }
};
}  // namespace

MILLRACE_PLUGIN(Throwing, .kind = "compression", .id = "org.example.compression.start_throws",
                .version = "0.1.0");
