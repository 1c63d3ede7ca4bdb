#include "open_files.h"

#include <algorithm>

namespace millrace::filelog {

OpenFiles::OpenFiles(std::size_t files_max) : files_max_(std::max<std::size_t>(files_max, 2)) {}

void OpenFiles::used(const std::shared_ptr<Segment>& segment) {
  if (auto& place = segment->place()) {
    newest_first_.splice(newest_first_.begin(), newest_first_, *place);
    return;
  }
  newest_first_.push_front(segment);
  segment->place() = newest_first_.begin();
  while (newest_first_.size() > files_max_) {
    if (const auto oldest = newest_first_.back().lock()) {
      oldest->place().reset();
      oldest->let_go();
    }
    newest_first_.pop_back();
  }
}

}  // namespace millrace::filelog
