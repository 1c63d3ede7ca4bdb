#include "aux_files.h"

#include <limits>

#include <millrace/filelog/names.h>

namespace millrace::filelog {

namespace {

constexpr std::size_t snapshots_max = 3;
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

// Leader epochs are one file for the whole log; the others are files named by an offset.
struct Naming {
  std::string_view suffix;
  std::size_t entries_max;
};
Naming naming_of(AuxKind kind) {
  switch (kind) {
    case AuxKind::producer_snapshot: return {producer_suffix, snapshots_max};
    case AuxKind::aggregate_snapshot: return {aggregate_suffix, snapshots_max};
    case AuxKind::aborted_transactions: return {aborted_suffix, unlimited};
    case AuxKind::leader_epochs: break;
  }
  return {{}, 1};
}

std::string path_of(const std::string& folder, AuxKind kind, Offset at) {
  const auto suffix = naming_of(kind).suffix;
  return folder + "/" +
         (suffix.empty() ? std::string(leader_epochs_file) : offset_name(at, suffix));
}

// Sorted: names are digits of one width, and listings are sorted by name.
Result<std::vector<Offset>> offsets_of(FileSystem& files, const std::string& folder,
                                       std::string_view suffix) {
  MR_TRY(const auto listing, files.list(folder));
  std::vector<Offset> offsets;
  for (const auto& file : listing) {
    const auto name = parse_offset_name(file.name);
    if (name && name->suffix == suffix) offsets.push_back(name->offset);
  }
  return offsets;
}

Result<> remove_one(FileSystem& files, const std::string& path) {
  auto removed = files.remove(path);
  if (!removed && removed.error().code == Errc::not_found) return {};
  return removed;
}

// The newest few stay.
Result<> remove_old(FileSystem& files, const std::string& folder, AuxKind kind) {
  const auto naming = naming_of(kind);
  if (naming.suffix.empty()) return {};
  MR_TRY(const auto offsets, offsets_of(files, folder, naming.suffix));
  for (std::size_t old = 0;
       old + naming.entries_max < offsets.size() && naming.entries_max != unlimited; ++old) {
    MR_CHECK(files.remove(path_of(folder, kind, offsets[old])));
  }
  return {};
}

}  // namespace

Result<std::vector<AuxEntry>> read_aux(FileSystem& files, const std::string& folder, AuxKind kind) {
  std::vector<AuxEntry> entries;
  std::vector<Offset> offsets{Offset{0}};
  if (const auto suffix = naming_of(kind).suffix; !suffix.empty()) {
    MR_TRY(offsets, offsets_of(files, folder, suffix));
  }
  for (const auto at : offsets) {
    auto content = read_file(files, path_of(folder, kind, at));
    if (content) {
      if (!content->empty()) entries.push_back({at, std::move(*content)});
    } else if (content.error().code != Errc::not_found) {
      return content.error();
    }
  }
  return entries;
}

Result<> write_aux(FileSystem& files, const std::string& folder, AuxKind kind, Offset at,
                   const Buffer& value) {
  const auto path = path_of(folder, kind, at);
  if (value.empty()) {
    MR_CHECK(remove_one(files, path));
    return files.sync_folder(folder);
  }
  MR_CHECK(replace_file(files, path, value));
  return remove_old(files, folder, kind);
}

Result<> prepare_aux(FileSystem& files, const std::string& folder, AuxKind kind, Offset at,
                     const Buffer& value) {
  if (value.empty()) return {};
  const auto temporary = path_of(folder, kind, at) + std::string(temporary_mark);
  MR_TRY(const auto file, files.open(temporary, OpenMode::create));
  MR_CHECK(file->truncate(0));
  const Bytes content = value;
  return file->write_at(0, std::span(&content, 1));
}

Result<> name_aux(FileSystem& files, const std::string& folder, AuxKind kind, Offset at,
                  const Buffer& value) {
  const auto path = path_of(folder, kind, at);
  if (value.empty()) return remove_one(files, path);
  MR_CHECK(files.rename(path + std::string(temporary_mark), path));
  return remove_old(files, folder, kind);
}

}  // namespace millrace::filelog
