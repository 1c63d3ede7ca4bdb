// Files that are to go: by their names they are gone already, their space comes back later.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <millrace/environment.h>

namespace millrace::filelog {

/// What is still there when the broker ends goes when the log is opened again.  [any thread, but
/// for add()]
class DoomedFiles {
 public:
  explicit DoomedFiles(Environment& environment) : state_(std::make_shared<State>(environment)) {}

  /// A worker removes them when the delay is over.  [shard]
  void add(Shard& shard, std::vector<std::string> paths, Duration delay);
  /// All of them go now: the space is needed.
  void hurry();

 private:
  struct State {
    explicit State(Environment& of) : environment(of) {}
    Environment& environment;
    std::mutex mutex;
    std::map<std::uint64_t, std::vector<std::string>> waiting;  // guarded by mutex
    std::uint64_t next = 0;                                     // guarded by mutex
  };
  static void remove(Environment& environment, std::vector<std::string> paths);

  std::shared_ptr<State> state_;  // timers may outlive the storage, and then do nothing
};

}  // namespace millrace::filelog
