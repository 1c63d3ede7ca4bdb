#include <memory>
#include <utility>

#include <millrace/system_plugin.h>

#include "server.h"

namespace millrace::http_transport {
namespace {

class HttpTransportPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    MR_TRY(auto settings, read_settings(host.options()));
    return registrar.add(std::make_unique<Server>(host, std::move(settings)));
  }
};

}  // namespace
}  // namespace millrace::http_transport

MILLRACE_SYSTEM_PLUGIN(millrace::http_transport::HttpTransportPlugin, .kind = "transport",
                       .id = "org.millrace.transport.http", .version = MILLRACE_VERSION,
                       .summary = "Metrics, health and administration over HTTP",
                       .options = millrace::http_transport::declared_options);
