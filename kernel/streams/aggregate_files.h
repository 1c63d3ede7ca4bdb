// Other versions of running aggregates, from plugin files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel/host/instance_host.h"
#include "kernel/host/plan.h"
#include "kernel/streams/aggregate_source.h"

namespace millrace::kernel {

class AggregateFiles final : public AggregateSource {
 public:
  /// `running`: the plugins of kind operators, whose options another version of theirs gets too.
  /// `data`: the data directory, for private copies.
  AggregateFiles(HostServices services, std::shared_ptr<const HostSettings> settings,
                 std::vector<PlannedPlugin> running, std::string data);

  Task<AggregateVersion> load(AggregateDeclaration running, std::string plugin,
                              std::string file) override;

 private:
  HostServices services_;
  std::shared_ptr<const HostSettings> settings_;
  std::vector<PlannedPlugin> running_;
  std::string data_;
};

}  // namespace millrace::kernel
