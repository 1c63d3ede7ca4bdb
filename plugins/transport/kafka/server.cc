#include "server.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace millrace::kafka_transport {
namespace {

/// The kernel's setting; -1 when it has none.
std::int32_t parse_node_id(std::string_view text) {
  std::int32_t id = -1;
  std::from_chars(text.data(), text.data() + text.size(), id);
  return id;
}

}  // namespace

Server::Server(Host& host, Settings settings, LostBrokers* lost)
    : environment_(host.environment()),
      instance_(host.instance()),
      node_id_(parse_node_id(host.setting("broker.id"))),
      log_(host.log()),
      settings_(std::move(settings)),
      kept_metrics_(host.metrics()),
      lost_(lost) {}

Task<Endpoint> Server::listen(Broker& broker) {
  MR_ASSERT(!listener_);
  apis_.emplace(broker);
  metrics_.emplace(kept_metrics_, *apis_);
  context_.emplace(settings_, *apis_, broker, log_, *metrics_, instance_, node_id_,
                   broker.service<GroupService>(), broker.service<ClusterService>(), lost_);
  const auto shards = environment_.shards();
  const auto answer_bytes_max = settings_.answer_bytes_pending_max / shards.size();
  for (auto* shard : shards) {
    shards_.push_back(
        std::make_unique<ShardConnections>(*context_, *shard, open_, answer_bytes_max));
  }
  auto listening = environment_.network().listen(settings_.listen);
  MR_CO_TRY(listener_, co_await std::move(listening));

  Endpoint endpoint{instance_, listener_->local(), settings_.advertise};
  if (endpoint.advertised.port == 0) endpoint.advertised.port = endpoint.bound.port;
  Shard& here = co_await this_shard();
  spawn(here, accept_connections(), "kafka accept");
  co_return endpoint;
}

Task<> Server::accept_connections() {
  MR_CO_TRY(const auto pass, accepting_.enter());
  for (std::size_t last = shards_.size() - 1;;) {
    last = next_shard(last);
    auto& connections = *shards_[last];
    auto accepting = listener_->accept(connections.shard());
    MR_CO_TRY(auto stream, co_await std::move(accepting));
    hand_over(connections, std::move(stream));
  }
}

std::size_t Server::next_shard(std::size_t last) const {
  auto least = (last + 1) % shards_.size();
  for (std::size_t step = 2; step <= shards_.size(); ++step) {
    const auto at = (last + step) % shards_.size();
    if (shards_[at]->expected() < shards_[least]->expected()) least = at;
  }
  return least;
}

void Server::hand_over(ShardConnections& connections, std::unique_ptr<Stream> stream) {
  connections.expect();
  connections.shard().post([&connections, stream = std::move(stream)]() mutable {
    connections.adopt(std::move(stream));
  });
}

Task<> Server::stop(Duration grace) {
  if (!listener_) co_return {};
  listener_->close();
  MR_CO_CHECK(co_await accepting_.close());

  Shard& here = co_await this_shard();
  std::vector<Pending<>> stopping;
  for (auto& connections : shards_) {
    auto stop_shard = [of = connections.get(), grace] { return of->stop(grace); };
    stopping.push_back(start(here, run_on(connections->shard(), std::move(stop_shard))));
  }
  for (auto& stopped : stopping) MR_CO_CHECK(co_await stopped);
  co_return {};
}

}  // namespace millrace::kafka_transport
