// Whether all loops of a broker turn.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/environment.h>

namespace millrace::kernel {

/// [one thread, which is none of the environment's]
class Heartbeat {
 public:
  /// `environment` outlives this.
  explicit Heartbeat(Environment& environment);

  /// Whether every loop has come round since this last answered true, or since it was made. Then
  /// all are asked anew.
  bool beat();
  /// The threads that have not: "mr-shard-1", "mr-control".
  std::vector<std::string> missing() const;

 private:
  struct Loop;
  void ask();

  std::vector<std::shared_ptr<Loop>> loops_;
};

}  // namespace millrace::kernel
