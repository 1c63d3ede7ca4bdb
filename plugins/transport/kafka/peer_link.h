// Connections to other brokers of the cluster, over the protocol's client library.
#pragma once

#include <memory>
#include <string_view>

#include <millrace/environment.h>
#include <millrace/peers.h>

namespace millrace::kafka {
class Client;
}

namespace millrace::kafka_transport {

class LostBrokers;

/// A connection to another broker of the cluster, as one.
Task<std::unique_ptr<kafka::Client>> connect_as_broker(Network& network, Address address);

/// What a peer calls itself in ApiVersions; it alone is told of private APIs, so that brokers of
/// two releases find a version that both speak.
inline constexpr std::string_view peer_software = "millrace-broker";

/// One connection for each connect(): a call that takes long does not hold up those of another.
/// [any shard; a Peer: the shard that connected]
class KafkaPeerLink final : public PeerLink {
 public:
  /// `lost`: where it is noted who could not be reached; outlives it.
  explicit KafkaPeerLink(Network& network, LostBrokers* lost = nullptr)
      : network_(network), lost_(lost) {}
  Task<std::unique_ptr<Peer>> connect(Address address) override;

 private:
  Network& network_;
  LostBrokers* lost_;
};

}  // namespace millrace::kafka_transport
