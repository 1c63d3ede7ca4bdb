// The machine that the tool runs on.
#pragma once

#include <string>
#include <vector>

#include "kernel/cli/doctor.h"
#include "kernel/env/real_environment.h"
#include "kernel/host/trial.h"

namespace millrace::kernel::cli::doctor {

/// Files are read as they are; the network is that of `environment`, which outlives this. Nothing
/// that does not answer is waited for long.
class MachineProbe final : public Probe {
 public:
  MachineProbe(RealEnvironment& environment, std::vector<std::string> plugin_folders,
               PluginTrial trial)
      : environment_(environment),
        plugin_folders_(std::move(plugin_folders)),
        trial_(std::move(trial)) {}

  Result<std::string> read(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& folder) override;
  Result<FileFacts> look_at(const std::string& path) override;
  Result<std::string> target_of(const std::string& link) override;
  Result<VolumeFacts> volume(const std::string& path) override;
  Result<ClockFacts> clock() override;
  std::uint32_t user() override;
  Result<std::vector<std::string>> addresses_of(const std::string& host) override;
  Result<> try_listen(const Address& address) override;
  Result<> try_connect(const Address& address) override;
  Result<std::string> say(const Address& address, std::string_view text) override;
  Result<MetadataAnswer> metadata(const std::string& address) override;
  std::vector<RefusedPlugin> refused_plugins() override;

 private:
  RealEnvironment& environment_;
  std::vector<std::string> plugin_folders_;
  PluginTrial trial_;
};

}  // namespace millrace::kernel::cli::doctor
