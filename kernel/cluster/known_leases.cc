#include "kernel/cluster/known_leases.h"

#include <utility>

#include "kernel/cluster/znodes.h"

namespace millrace::kernel {

Task<> KnownLeases::load(const Log& log) {
  const std::string key(znodes::broker_leases);
  const auto stored = co_await coordination_.get(key);
  if (!stored && stored.error().code == Errc::not_found) co_return {};
  if (!stored) co_return stored.error();
  any_ = true;
  auto leases = znodes::decode_configs(key, stored->value);
  if (leases) {
    leases_ = *std::move(leases);
  } else {
    log.warning("it cannot be read which lease each broker had; all are taken to be new",
                {{"key", key}, {"error", to_string(leases.error())}});
  }
  co_return {};
}

bool KnownLeases::bounced(const BrokerState& broker) const {
  const auto found = leases_.find(std::to_string(broker.id));
  if (found == leases_.end()) return any_;
  return found->second != std::to_string(broker.epoch);
}

Task<> KnownLeases::store(const std::map<std::int32_t, BrokerState>& brokers) {
  Leases leases;
  for (const auto& [id, broker] : brokers) {
    leases.emplace(std::to_string(id), std::to_string(broker.epoch));
  }
  if (any_ && leases == leases_) co_return {};
  std::vector<Write> writes;
  writes.push_back(
      {.key = std::string(znodes::broker_leases), .value = znodes::encode_configs(leases)});
  MR_CO_CHECK(co_await coordination_.commit(std::move(writes)));
  any_ = true;
  leases_ = std::move(leases);
  co_return {};
}

}  // namespace millrace::kernel
