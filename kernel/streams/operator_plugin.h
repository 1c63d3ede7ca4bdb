// The plugin object of one step of a stream.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/operator.h>
#include <millrace/plugin.h>

#include "kernel/host/instance_host.h"
#include "kernel/host/plan.h"

namespace millrace::kernel {

/// Created and started; lives as long as an operator that it has made. All of it runs code of the
/// plugin: on a worker.
class OperatorPlugin {
 public:
  /// `instance`: "STREAM.STEP". `settings`: what Host::setting() answers. An error has the place in
  /// the configuration, the file, the plugin's id and the reason; nothing that the plugin throws
  /// passes.
  static Result<std::shared_ptr<OperatorPlugin>> start(PlannedStream::Step step,
                                                       const std::string& instance,
                                                       std::shared_ptr<const HostSettings> settings,
                                                       HostServices services);
  ~OperatorPlugin();
  OperatorPlugin(const OperatorPlugin&) = delete;
  OperatorPlugin& operator=(const OperatorPlugin&) = delete;

  Result<std::unique_ptr<Operator>> make();
  /// Whether `stream` may write where this step's options say: see OperatorTopics.
  Result<> check_topics(const StreamSpec& stream);
  const PluginLibrary& library() const noexcept;

 private:
  struct Parts;
  explicit OperatorPlugin(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace millrace::kernel
