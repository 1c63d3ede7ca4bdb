#include "kernel/broker/cluster_peers.h"

namespace millrace::kernel {

Address ClusterPeers::address_of(const BrokerState& broker) const {
  return kernel::address_of(broker, listener_);
}

Task<std::shared_ptr<Peer>> ClusterPeers::peer(Key key, Address address) {
  if (!link_) co_return Error{Errc::unsupported, "no transport reaches other brokers"};
  if (address.host.empty()) co_return Error{Errc::not_found, "the broker tells no address"};
  if (const auto known = peers_.find(key); known != peers_.end()) co_return known->second;
  MR_CO_TRY(auto made, co_await link_->connect(std::move(address)));
  std::shared_ptr<Peer> peer = std::move(made);
  peers_.insert_or_assign(key, peer);
  co_return std::move(peer);
}

void ClusterPeers::forget(const Address& address) {
  const auto gone = to_string(address);
  std::erase_if(peers_, [&gone](const auto& entry) { return entry.first.second == gone; });
}

void ClusterPeers::forget(const Key& key, const std::shared_ptr<Peer>& peer) {
  const auto known = peers_.find(key);
  if (known != peers_.end() && known->second == peer) peers_.erase(known);
}

}  // namespace millrace::kernel
