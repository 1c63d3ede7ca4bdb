#include "kernel/streams/snapshots.h"

#include <cstring>
#include <string>
#include <utility>

#include <millrace/bytes.h>

namespace millrace::kernel {

namespace {

constexpr std::string_view magic = "MRAS";
constexpr std::int16_t version = 1;
constexpr std::size_t version_at = 4;
constexpr std::size_t crc_at = 6;
constexpr std::size_t offset_at = 10;
constexpr std::size_t entries_at = 18;
constexpr std::size_t head_bytes = 26;

Error corrupt(std::string what) { return {Errc::corrupt, "snapshot: " + std::move(what)}; }

// Takes one length and so many bytes from the front.
std::optional<Bytes> take(Bytes& from) {
  std::uint64_t size = 0;
  const auto read = load_uvarint(from, size);
  if (read == 0 || size > from.size() - read) return std::nullopt;
  const auto taken = from.subspan(read, size);
  from = from.subspan(read + size);
  return taken;
}

Result<> check_entries(Bytes entries, std::int64_t count) {
  for (std::int64_t at = 0; at < count; ++at) {
    if (!take(entries) || !take(entries)) {
      return corrupt("ends in entry " + std::to_string(at) + " of " + std::to_string(count));
    }
  }
  if (entries.empty()) return {};
  return corrupt(std::to_string(entries.size()) + " bytes behind the last entry");
}

}  // namespace

SnapshotFileWriter::SnapshotFileWriter() : file_(head_bytes) {}

void SnapshotFileWriter::put_bytes(Bytes bytes) {
  std::byte length[varlong_bytes_max];
  const auto used = store_uvarint(length, bytes.size());
  file_.insert(file_.end(), length, length + used);
  file_.insert(file_.end(), bytes.begin(), bytes.end());
}

void SnapshotFileWriter::put(Bytes key, Bytes value) {
  put_bytes(key);
  put_bytes(value);
  ++entries_;
}

Buffer SnapshotFileWriter::finish(Offset at) && {
  auto* head = file_.data();
  std::memcpy(head, magic.data(), magic.size());
  store_be(head + version_at, version);
  store_be(head + offset_at, at.value);
  store_be(head + entries_at, entries_);
  store_be(head + crc_at, crc32c(Bytes(file_).subspan(offset_at)));
  return Buffer::copy_of(Bytes(file_));
}

SnapshotFileReader::SnapshotFileReader(Buffer file)
    : file_(std::move(file)), rest_(file_.bytes().subspan(head_bytes)) {}

Result<SnapshotFileReader> SnapshotFileReader::open(Buffer file, Offset at) {
  const auto bytes = file.bytes();
  if (bytes.size() < head_bytes) return corrupt("only " + std::to_string(bytes.size()) + " bytes");
  if (!as_text(bytes).starts_with(magic)) return corrupt("does not begin with MRAS");
  const auto found = load_be<std::int16_t>(bytes.data() + version_at);
  if (found != version) {
    return Error{Errc::incompatible, "snapshot: of version " + std::to_string(found) +
                                         ", and this broker knows version " +
                                         std::to_string(version)};
  }
  if (load_be<std::uint32_t>(bytes.data() + crc_at) != crc32c(bytes.subspan(offset_at))) {
    return corrupt("crc does not match");
  }
  if (load_be<std::int64_t>(bytes.data() + offset_at) != at.value) {
    return corrupt("is of another offset than its name says");
  }
  const auto entries = load_be<std::int64_t>(bytes.data() + entries_at);
  MR_CHECK(check_entries(bytes.subspan(head_bytes), entries));
  return SnapshotFileReader(std::move(file));
}

std::optional<SnapshotReader::Entry> SnapshotFileReader::next() {
  if (rest_.empty()) return std::nullopt;
  Entry entry;
  entry.key = *take(rest_);
  entry.value = *take(rest_);
  return entry;
}

}  // namespace millrace::kernel
