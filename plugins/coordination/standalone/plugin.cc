#include <millrace/system_plugin.h>

#include "standalone.h"

namespace millrace::standalone {
namespace {

class StandalonePlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    auto folder = std::string(host.setting("broker.data"));
    return registrar.add(
        std::make_unique<Standalone>(host.environment(), host.log(), std::move(folder)));
  }
};

}  // namespace
}  // namespace millrace::standalone

MILLRACE_SYSTEM_PLUGIN(millrace::standalone::StandalonePlugin, .kind = "coordination",
                       .id = "org.millrace.coordination.standalone", .version = MILLRACE_VERSION,
                       .summary = "one broker's metadata in a local file");
