#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <millrace/system_plugin.h>

#include "lost_brokers.h"
#include "peer_link.h"
#include "record_link.h"
#include "server.h"
#include "settings.h"

namespace millrace::kafka_transport {
namespace {

class KafkaTransportPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    MR_TRY(auto settings, read_settings(host.options()));
    peers_.emplace(host.environment().network(), &lost_);
    records_.emplace(host.environment().network());
    return registrar.add(std::make_unique<Server>(host, std::move(settings), &lost_));
  }
  void* extension(std::string_view id) noexcept override {
    if (id == PeerLink::extension_id && peers_) return static_cast<PeerLink*>(&*peers_);
    if (id == RecordLink::extension_id && records_) return static_cast<RecordLink*>(&*records_);
    return nullptr;
  }

 private:
  LostBrokers lost_;
  // Once started.
  std::optional<KafkaPeerLink> peers_;
  std::optional<KafkaRecordLink> records_;
};

}  // namespace
}  // namespace millrace::kafka_transport

MILLRACE_SYSTEM_PLUGIN(millrace::kafka_transport::KafkaTransportPlugin, .kind = "transport",
                       .id = "org.millrace.transport.kafka", .version = MILLRACE_VERSION,
                       .summary = "The Kafka protocol, for every client that speaks it",
                       .options = millrace::kafka_transport::declared_options);
