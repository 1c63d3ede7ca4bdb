// Where another version of a running aggregate comes from.
#pragma once

#include <memory>
#include <string>

#include <millrace/aggregate.h>
#include <millrace/task.h>

namespace millrace::kernel {

/// What makes an aggregate's objects, and where it is from.
struct AggregateVersion {
  std::shared_ptr<AggregateFactory> factory;  ///< its plugin stays as long as this
  std::string version;
  std::string path;
};

/// [control thread]
class AggregateSource {
 public:
  virtual ~AggregateSource() = default;
  /// What the plugin `file` offers as the aggregate that `running` declares, of the plugin with the
  /// id `plugin`. Errc::invalid_argument says why it cannot be that.
  virtual Task<AggregateVersion> load(AggregateDeclaration running, std::string plugin,
                                      std::string file) = 0;
};

}  // namespace millrace::kernel
