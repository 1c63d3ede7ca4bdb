#include "open_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace millrace::filelog {

// A file of /proc tells no size, and this one is small. Where there is none nothing bounds it.
std::size_t files_to_keep_open(FileSystem& files, std::size_t wanted) {
  constexpr std::string_view name = "Max open files";
  constexpr std::size_t share = 8;
  const auto file = files.open("/proc/self/limits", OpenMode::read);
  if (!file) return wanted;
  std::array<std::byte, 4096> space;
  const auto bytes = (*file)->read_at(0, space);
  if (!bytes) return wanted;
  auto text = as_text(Bytes(space).first(*bytes));
  const auto at = text.find(name);
  if (at == text.npos) return wanted;
  text.remove_prefix(at + name.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::size_t limit = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), limit);
  return read.ec == std::errc{} ? std::min(wanted, limit / share) : wanted;  // "unlimited"
}

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
