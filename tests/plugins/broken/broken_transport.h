// The shipped transport in front of a broker that is spoilt.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <millrace/system_plugin.h>

#include "passing_broker.h"
#include "peer_link.h"
#include "server.h"
#include "settings.h"

namespace millrace::broken {

/// Spoilt: a PassingBroker.
template <class Spoilt>
class BrokenTransport final : public Transport {
 public:
  explicit BrokenTransport(std::unique_ptr<Transport> sound) : sound_(std::move(sound)) {}
  Task<Endpoint> listen(Broker& broker) override { return sound_->listen(spoilt_.emplace(broker)); }
  Task<> stop(Duration grace) override { return sound_->stop(grace); }

 private:
  std::optional<Spoilt> spoilt_;  // outlives what uses it
  std::unique_ptr<Transport> sound_;
};

template <class Spoilt>
class BrokenTransportPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    MR_TRY(auto settings, kafka_transport::read_settings(host.options()));
    peers_.emplace(host.environment().network());
    auto sound = std::make_unique<kafka_transport::Server>(host, std::move(settings));
    return registrar.add(std::make_unique<BrokenTransport<Spoilt>>(std::move(sound)));
  }
  void* extension(std::string_view id) noexcept override {
    if (id != PeerLink::extension_id || !peers_) return nullptr;
    return static_cast<PeerLink*>(&*peers_);
  }

 private:
  std::optional<kafka_transport::KafkaPeerLink> peers_;  // once started
};

}  // namespace millrace::broken
