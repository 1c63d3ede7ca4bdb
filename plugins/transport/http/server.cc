#include "server.h"

#include <utility>

namespace millrace::http_transport {
namespace {

bool is_loopback(const std::string& host) {
  return host.starts_with("127.") || host == "::1" || host == "localhost";
}

}  // namespace

Server::Server(Host& host, Settings settings)
    : environment_(host.environment()),
      instance_(host.instance()),
      log_(host.log()),
      settings_(std::move(settings)),
      all_metrics_(host.metrics()),
      metrics_(host.metrics()) {}

Task<Endpoint> Server::listen(Broker& broker) {
  MR_ASSERT(!listener_);
  services_.emplace(settings_, environment_, broker, broker.service<Operations>(),
                    broker.service<GroupService>(), all_metrics_, log_);
  connections_ = std::make_unique<Connections>(*services_, metrics_);
  auto listening = environment_.network().listen(settings_.listen);
  MR_CO_TRY(listener_, co_await std::move(listening));
  if (!is_loopback(settings_.listen.host)) {
    log_.warning(
        "listening beyond this machine: whoever reaches this address administers the "
        "broker",
        {{"listen", to_string(settings_.listen)}});
  }
  Shard& here = co_await this_shard();
  spawn(here, accept_connections(), "http accept");
  co_return Endpoint{instance_, listener_->local(), {}};
}

Task<> Server::accept_connections() {
  MR_CO_TRY(const auto pass, accepting_.enter());
  Shard& owner = *environment_.shards().front();
  while (true) {
    auto accepting = listener_->accept(owner);
    MR_CO_TRY(auto stream, co_await std::move(accepting));
    owner.post([this, &owner, stream = std::move(stream)]() mutable {
      connections_->adopt(owner, std::move(stream));
    });
  }
}

Task<> Server::stop(Duration grace) {
  if (!listener_) co_return {};
  listener_->close();
  MR_CO_CHECK(co_await accepting_.close());
  auto stopping = run_on(*environment_.shards().front(), [connections = connections_.get(), grace] {
    return connections->stop(grace);
  });
  co_return co_await std::move(stopping);
}

}  // namespace millrace::http_transport
