#include <memory>
#include <utility>

#include <millrace/system_plugin.h>

#include "server.h"
#include "settings.h"

namespace millrace::kafka_transport {
namespace {

class KafkaTransportPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    MR_TRY(auto settings, read_settings(host.options()));
    return registrar.add(std::make_unique<Server>(host, std::move(settings)));
  }
};

}  // namespace
}  // namespace millrace::kafka_transport

MILLRACE_SYSTEM_PLUGIN(millrace::kafka_transport::KafkaTransportPlugin, .kind = "transport",
                       .id = "org.millrace.transport.kafka", .version = "0.1.0",
                       .summary = "The Kafka protocol, for every client that speaks it",
                       .options = millrace::kafka_transport::declared_options);
