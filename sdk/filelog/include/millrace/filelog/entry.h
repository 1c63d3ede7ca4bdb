// What stands in a log file: entries back to back, each a record batch (format V2) or a message of
// format V0 or V1. Walking needs the first bytes of each; checking reads all of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <millrace/environment.h>
#include <millrace/result.h>
#include <millrace/types.h>

namespace millrace::filelog {

/// One entry, from its head.
struct Entry {
  /// V0 and V1: equal to `last`, since the first offset of a compressed message is inside it.
  Offset base;
  Offset last;
  Timestamp max_timestamp;
  std::uint64_t position = 0;
  std::uint64_t bytes = 0;
  std::int8_t magic = 0;

  std::uint64_t end() const noexcept { return position + bytes; }
};

/// Walks the entries of `file` between two positions of which `from` is the start of one. Reads
/// heads alone, in small chunks, so that large bodies are skipped.  [any thread; may block on the
/// disk]
class EntryScanner {
 public:
  EntryScanner(const File& file, std::uint64_t from, std::uint64_t end)
      : file_(file), position_(from), end_(end) {}

  /// The next entry; none at the end. Errc::out_of_range: the file ends within it. Errc::corrupt:
  /// the bytes there are no entry. Either says what, and the scanner stays where it is.
  Result<std::optional<Entry>> next();
  /// Where next() reads.
  std::uint64_t position() const noexcept { return position_; }
  /// Goes on at the start of another entry.
  void skip_to(std::uint64_t position) noexcept { position_ = position; }

 private:
  Result<Bytes> head();

  const File& file_;
  std::uint64_t position_;
  std::uint64_t end_;
  std::vector<std::byte> chunk_;
  std::uint64_t chunk_at_ = 0;
  std::size_t chunk_bytes_ = 0;
};

/// Compares the stored checksum with the bytes of the entry: Errc::corrupt when they differ.
Result<> check_crc(const File& file, const Entry& entry);

/// Whether every byte of [from, end) is zero, as after a crash that lost data but kept the length.
Result<bool> all_zero(const File& file, std::uint64_t from, std::uint64_t end);

/// Reads the range once, so that it is in the page cache, for who reads on from its end. Answers to
/// where the system may have read by itself.  [a worker]
Result<std::uint64_t> bring_in(const File& file, std::uint64_t from, std::uint64_t end);

}  // namespace millrace::filelog
