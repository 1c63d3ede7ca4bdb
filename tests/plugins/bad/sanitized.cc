// Built with AddressSanitizer, whose runtime must be in the program: to map this ends a program
// that lacks it.
#include "../probe.h"

namespace {

class SanitizedPlugin final : public millrace::Plugin {
 public:
  millrace::Result<> start(millrace::Registrar&, millrace::Host&) override { return {}; }
};

}  // namespace

MILLRACE_PLUGIN(SanitizedPlugin, .kind = "compression", .id = "org.example.compression.sanitized",
                .version = "0.1.0");
