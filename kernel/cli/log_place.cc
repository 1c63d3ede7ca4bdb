#include "kernel/cli/log_place.h"

#include <algorithm>
#include <filesystem>

#include <millrace/filelog/checkpoint_text.h>
#include <millrace/filelog/names.h>
#include <millrace/utf8.h>

#include "kernel/cli/log_walk.h"
#include "kernel/env/lock_holder.h"

namespace millrace::kernel::cli {

namespace {

constexpr std::array all_kinds{CheckpointKind::recovery_point, CheckpointKind::high_watermark,
                               CheckpointKind::log_start, CheckpointKind::cleaner};

// Without a slash at its end, and with a name also where somebody says ".".
std::string whole_path(const std::string& path) {
  auto whole = std::filesystem::absolute(path).lexically_normal();
  if (!whole.has_filename() && whole.has_parent_path()) whole = whole.parent_path();
  return whole.string();
}

std::string parent_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

std::string name_of_path(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

bool has_segments(const std::vector<FileInfo>& listing) {
  return std::ranges::any_of(listing, [](const FileInfo& file) {
    const auto name = filelog::parse_offset_name(file.name);
    return name && name->suffix == filelog::log_suffix;
  });
}

bool is_data_directory(const std::vector<FileInfo>& listing) {
  return std::ranges::any_of(listing, [](const FileInfo& file) {
    if (file.is_folder) return filelog::parse_partition_folder(file.name).has_value();
    return file.name == filelog::owner_file || file.name == filelog::lock_file;
  });
}

Result<DataDirectory> look_at_directory(FileSystem& files, const std::string& path) {
  DataDirectory directory{.path = path};
  const auto lock = path + "/" + std::string(filelog::lock_file);
  directory.marked = files.info(lock).has_value() ||
                     files.info(path + "/" + std::string(filelog::owner_file)).has_value();
  MR_TRY(directory.holder, lock_holder(lock));
  for (const auto kind : all_kinds) {
    const auto file = path + "/" + std::string(filelog::checkpoint_file(kind));
    const auto content = read_file(files, file);
    if (!content && content.error().code == Errc::not_found) continue;
    if (!content) return content.error();
    auto offsets = filelog::read_checkpoint(content->text(), file);
    if (offsets) {
      directory.checkpoints[static_cast<std::size_t>(kind)] = std::move(*offsets);
    } else {
      directory.unreadable.push_back({file, std::move(offsets).error().detail});
    }
  }
  return directory;
}

Result<LogPlace*> place_of(FileSystem& files, std::vector<LogPlace>& places,
                           const std::string& directory) {
  const auto known = std::ranges::find(places, directory,
                                       [](const LogPlace& place) { return place.directory.path; });
  if (known != places.end()) return &*known;
  MR_TRY(auto found, look_at_directory(files, directory));
  places.push_back({.directory = std::move(found), .folders = {}});
  return &places.back();
}

// Of a segment whose successor is `next`: the first sound batch, or the last one.
enum class Which { first, last };
Result<std::optional<SoundBatch>> sound_batch(FileSystem& files, const std::string& path,
                                              Offset base, Offset next, Which which) {
  const auto opened = files.open(path, OpenMode::read);
  if (!opened) return opened.error();
  MR_TRY(const auto bytes, (*opened)->size());
  SegmentWalker walker(**opened, bytes, base, next);
  std::optional<SoundBatch> found;
  while (true) {
    MR_TRY(const auto item, walker.next());
    if (!item) return found;
    if (const auto* batch = std::get_if<SoundBatch>(&*item)) found = *batch;
    if (found && which == Which::first) return found;
  }
}

// Beside the first segment, which nothing stands before.
Result<bool> is_stranger(FileSystem& files, const PartitionFolder& folder, std::size_t at) {
  const auto& one = folder.segments[at];
  const auto& before = folder.segments[at - 1];
  MR_TRY(const auto own, sound_batch(files, folder.path_of(one, filelog::log_suffix), one.base,
                                     one.next, Which::first));
  if (own) return false;
  MR_TRY(const auto last, sound_batch(files, folder.path_of(before, filelog::log_suffix),
                                      before.base, one.next, Which::last));
  return last && last->entry.last >= one.base;
}

Result<> set_strangers_apart(FileSystem& files, PartitionFolder& folder) {
  auto& segments = folder.segments;
  for (std::size_t at = 1; at < segments.size();) {
    const auto stranger = is_stranger(files, folder, at);
    // A running broker deletes segments meanwhile.
    if (!stranger && stranger.error().code != Errc::not_found) return stranger.error();
    if (!stranger || !*stranger) {
      ++at;
      continue;
    }
    segments[at - 1].next = segments[at].next;
    folder.strangers.push_back(segments[at]);
    segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return {};
}

}  // namespace

std::string PartitionFolder::path_of(const SegmentFile& segment, std::string_view suffix) const {
  return path + "/" + filelog::offset_name(segment.base, suffix);
}

std::optional<Offset> DataDirectory::checkpointed(
    CheckpointKind kind, const std::optional<TopicPartition>& partition) const {
  if (!partition) return std::nullopt;
  const auto& offsets = checkpoints[static_cast<std::size_t>(kind)];
  const auto found = offsets.find(*partition);
  return found == offsets.end() ? std::nullopt : std::optional(found->second);
}

Result<std::vector<LogPlace>> find_places(FileSystem& files,
                                          const std::vector<std::string>& paths) {
  std::vector<LogPlace> places;
  for (const auto& given : paths) {
    const auto path = whole_path(given);
    MR_TRY(const auto info, files.info(path));
    if (!info.is_folder) {
      return Error{Errc::invalid_argument,
                   shown(given) + " is a file; expected a data directory or a partition's folder"};
    }
    MR_TRY(const auto listing, files.list(path));
    // A data directory may be called as a partition is: kafka-logs-1.
    const bool is_directory = is_data_directory(listing);
    const bool is_partition =
        has_segments(listing) ||
        (!is_directory && filelog::parse_partition_folder(name_of_path(path)).has_value());
    if (!is_partition && !is_directory) {
      return Error{Errc::invalid_argument,
                   shown(given) +
                       " holds no log: expected a data directory (broker.data), or a "
                       "partition's folder such as " +
                       shown(given) + "/orders-0"};
    }
    MR_TRY(auto* place, place_of(files, places, is_partition ? parent_of(path) : path));
    if (is_partition) {
      place->folders.push_back(path);
      continue;
    }
    for (const auto& file : listing) {
      if (!file.is_folder || !filelog::parse_partition_folder(file.name)) continue;
      place->folders.push_back(path + "/" + file.name);
    }
  }
  for (auto& place : places) {
    std::ranges::sort(place.folders);
    const auto twice = std::ranges::unique(place.folders);
    place.folders.erase(twice.begin(), twice.end());
  }
  return places;
}

Result<PartitionFolder> look_at_folder(FileSystem& files, const std::string& path) {
  PartitionFolder folder{.path = path, .name = name_of_path(path)};
  folder.partition = filelog::parse_partition_folder(folder.name);
  MR_TRY(folder.files, files.list(path));
  for (const auto& file : folder.files) {
    const auto name = filelog::parse_offset_name(file.name);
    if (file.is_folder || !name || name->suffix != filelog::log_suffix) continue;
    if (!folder.segments.empty()) folder.segments.back().next = name->offset;
    folder.segments.push_back({.base = name->offset, .next = {}, .bytes = file.size});
  }
  MR_CHECK(set_strangers_apart(files, folder));
  return folder;
}

}  // namespace millrace::kernel::cli
