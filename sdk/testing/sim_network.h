// Network, Stream and Listener of one node over the wire that all nodes share.
#pragma once

#include <memory>
#include <string>

#include "sim_wire.h"

namespace millrace::testing {

class SimNetwork final : public Network {
 public:
  SimNetwork(SimScheduler& scheduler, SimWire& wire, std::string host)
      : scheduler_(scheduler), wire_(wire), host_(std::move(host)) {}

  Task<std::unique_ptr<Listener>> listen(Address address) override;
  Task<std::unique_ptr<Stream>> connect(Address address) override;

  /// While down, every call fails.
  void set_down(bool down) noexcept { down_ = down; }

 private:
  Result<> check_up() const;

  SimScheduler& scheduler_;
  SimWire& wire_;
  std::string host_;
  bool down_ = false;
};

}  // namespace millrace::testing
