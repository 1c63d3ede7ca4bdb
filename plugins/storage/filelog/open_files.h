// Bounds how many log files are open at once: the one that was not used for the longest time is
// closed first, and opened again when it is needed.
#pragma once

#include <cstddef>
#include <list>
#include <memory>

#include "segment.h"

namespace millrace::filelog {

/// How many log files may stay open where `wanted` shall: of the descriptors that the process may
/// have an eighth at most, half of what connections leave. The other half is for those that are
/// open for a moment.
std::size_t files_to_keep_open(FileSystem& files, std::size_t wanted);

/// The open files of one shard's logs.  [that shard]
class OpenFiles {
 public:
  /// At least two: the one in use and the one that it is copied to.
  explicit OpenFiles(std::size_t files_max);

  /// `segment` has opened its file, or uses it.
  void used(const std::shared_ptr<Segment>& segment);
  std::size_t size() const noexcept { return newest_first_.size(); }

 private:
  const std::size_t files_max_;
  std::list<std::weak_ptr<Segment>> newest_first_;  // those that are gone drop out at the end
};

}  // namespace millrace::filelog
