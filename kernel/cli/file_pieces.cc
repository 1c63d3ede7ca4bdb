#include "kernel/cli/file_pieces.h"

#include <algorithm>
#include <span>

namespace millrace::kernel::cli {

namespace {

constexpr std::size_t chunk_bytes_max = std::size_t{1} << 20;

Result<Bytes> read_exactly(const File& file, std::uint64_t position, MutableBytes into) {
  MR_TRY(const auto read, file.read_at(position, into));
  if (read == into.size()) return Bytes(into);
  return Error{Errc::io, file.path() + ": ends at byte " + std::to_string(position + read) +
                             ", more was there a moment ago"};
}

Result<> copy_range(const FileRange& range, File& to, std::uint64_t& position) {
  std::vector<std::byte> chunk(std::min<std::uint64_t>(chunk_bytes_max, range.end - range.from));
  for (auto from = range.from; from < range.end;) {
    const auto wanted = std::min<std::uint64_t>(chunk.size(), range.end - from);
    MR_TRY(const auto bytes, read_exactly(range.file, from, MutableBytes(chunk).first(wanted)));
    MR_CHECK(to.write_at(position, std::span(&bytes, 1)));
    position += bytes.size();
    from += bytes.size();
  }
  return {};
}

}  // namespace

Result<> write_pieces(FileSystem& files, const std::string& path,
                      const std::vector<Piece>& pieces) {
  const auto temporary = path + ".tmp";
  {
    MR_TRY(auto file, files.open(temporary, OpenMode::create));
    MR_CHECK(file->truncate(0));
    std::uint64_t position = 0;
    for (const auto& piece : pieces) {
      if (piece.range) MR_CHECK(copy_range(*piece.range, *file, position));
      if (piece.bytes.empty()) continue;
      const Bytes bytes(piece.bytes);
      MR_CHECK(file->write_at(position, std::span(&bytes, 1)));
      position += bytes.size();
    }
    MR_CHECK(file->sync());
  }
  MR_CHECK(files.rename(temporary, path));
  return files.sync_folder(path.substr(0, path.rfind('/')));
}

Result<Holds> holds_just(FileSystem& files, const std::string& path, const FileRange& range) {
  const auto opened = files.open(path, OpenMode::read);
  if (!opened && opened.error().code == Errc::not_found) return Holds::no_file;
  if (!opened) return opened.error();
  const auto& file = **opened;
  MR_TRY(const auto size, file.size());
  if (size != range.end - range.from) return Holds::other;
  std::vector<std::byte> ours(std::min<std::uint64_t>(chunk_bytes_max, size));
  std::vector<std::byte> theirs(ours.size());
  for (std::uint64_t at = 0; at < size;) {
    const auto wanted = std::min<std::uint64_t>(ours.size(), size - at);
    MR_TRY(const auto a, read_exactly(file, at, MutableBytes(ours).first(wanted)));
    MR_TRY(const auto b,
           read_exactly(range.file, range.from + at, MutableBytes(theirs).first(wanted)));
    if (!std::ranges::equal(a, b)) return Holds::other;
    at += wanted;
  }
  return Holds::same;
}

}  // namespace millrace::kernel::cli
