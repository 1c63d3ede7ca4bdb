// Other brokers, as the control thread reaches them: a connection to each for each kind of
// question, made when it is needed, and anew after a failure.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include <millrace/peers.h>
#include <millrace/shard.h>

#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel {

/// What is asked on one connection is answered in order: what takes long has one of its own.
enum class PeerLane : std::uint8_t { updates, replicas, topics };

/// [control thread]
class ClusterPeers {
 public:
  /// `link` outlives it. `listener`: of which brokers' addresses are taken; one that a broker does
  /// not have is replaced by its first.
  void connect(PeerLink& link, std::string listener) {
    link_ = &link;
    listener_ = std::move(listener);
  }
  bool connected() const noexcept { return link_ != nullptr; }
  PeerLink* link() const noexcept { return link_; }

  /// No host where it tells none.
  Address address_of(const BrokerState& broker) const;

  /// Asks a broker, for at most `limit`. `call` gets a Peer& and answers the task to await.
  template <class F>
  auto ask(PeerLane lane, Address address, Duration limit, F call)
      -> decltype(call(std::declval<Peer&>())) {
    using T = typename decltype(call(std::declval<Peer&>()))::value_type;
    auto whole = [](ClusterPeers& self, PeerLane on, Address to, F todo) -> Task<T> {
      const Key key{on, to_string(to)};
      MR_CO_TRY(const auto peer, co_await self.peer(key, std::move(to)));
      auto answer = co_await todo(*peer);
      if (!answer) self.forget(key, peer);
      co_return std::move(answer);
    };
    auto asking = with_deadline(whole(*this, lane, std::move(address), std::move(call)), limit);
    co_return co_await std::move(asking);
  }

  /// Whoever was reached there is gone: the next question makes a connection of its own.
  void forget(const Address& address);
  void close() { peers_.clear(); }

 private:
  using Key = std::pair<PeerLane, std::string>;

  Task<std::shared_ptr<Peer>> peer(Key key, Address address);
  void forget(const Key& key, const std::shared_ptr<Peer>& peer);

  PeerLink* link_ = nullptr;
  std::string listener_;
  std::map<Key, std::shared_ptr<Peer>> peers_;
};

}  // namespace millrace::kernel
