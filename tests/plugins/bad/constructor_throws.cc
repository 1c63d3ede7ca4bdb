// Its plugin object cannot be made.
#include <stdexcept>

#include "../probe.h"

namespace {
class Throwing final : public millrace::Plugin {
 public:
  Throwing() { throw std::runtime_error("no"); }
  millrace::Result<> start(millrace::Registrar&, millrace::Host&) override { return {}; }
};
}  // namespace

MILLRACE_PLUGIN(Throwing, .kind = "compression", .id = "org.example.compression.constructor_throws",
                .version = "0.1.0");
