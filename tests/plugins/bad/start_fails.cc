// start() answers an error.
#include "../probe.h"

namespace {
class Failing final : public millrace::Plugin {
 public:
  millrace::Result<> start(millrace::Registrar&, millrace::Host&) override {
    return millrace::Error{millrace::Errc::io, "the tape is full"};
  }
};
}  // namespace

MILLRACE_PLUGIN(Failing, .kind = "compression", .id = "org.example.compression.start_fails",
                .version = "0.1.0");
