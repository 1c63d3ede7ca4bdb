// Large files made of parts of others, whole or not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <millrace/environment.h>

namespace millrace::kernel::cli {

struct FileRange {
  const File& file;
  std::uint64_t from = 0;
  std::uint64_t end = 0;
};

/// A range of a file, or bytes.
struct Piece {
  std::optional<FileRange> range;
  std::vector<std::byte> bytes;
};

/// Writes `path` as replace_file does: a temporary file, sync, rename, sync of the folder. The
/// pieces may be of the file that is replaced.  [blocks on the disk]
Result<> write_pieces(FileSystem& files, const std::string& path, const std::vector<Piece>& pieces);

enum class Holds { no_file, same, other };
/// What the file at `path` holds, beside that range.  [blocks on the disk]
Result<Holds> holds_just(FileSystem& files, const std::string& path, const FileRange& range);

}  // namespace millrace::kernel::cli
