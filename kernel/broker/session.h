// What the broker keeps for one connection.
#pragma once

#include <millrace/broker.h>

#include "kernel/broker/partitions.h"

namespace millrace::kernel {

/// [connection's shard]
class KernelSession final : public Session {
 public:
  KernelSession(ClientInfo client, ShardState& shard) : client_(std::move(client)), shard_(shard) {}

  const ClientInfo& client() const noexcept { return client_; }
  ShardState& shard() noexcept { return shard_; }

 private:
  ClientInfo client_;
  ShardState& shard_;
};

inline const KernelSession& kernel_session(const Session& session) noexcept {
  return static_cast<const KernelSession&>(session);
}
inline KernelSession& kernel_session(Session& session) noexcept {
  return static_cast<KernelSession&>(session);
}

}  // namespace millrace::kernel
