#include "journal_format.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <millrace/bytes.h>

namespace millrace::standalone {

namespace {

// The last letter is the version.
constexpr std::string_view magic = "MRJ1";
constexpr std::size_t version_at = 3;
constexpr std::size_t sealed_at = 4;
constexpr std::size_t header_crc_at = 12;
constexpr std::size_t entry_head_bytes = 8;

/// What a disk writes as a whole or not at all.
constexpr std::uint64_t sector_bytes = 512;

template <std::integral T>
void put(std::string& out, T value) {
  std::byte bytes[sizeof(T)];
  store_be(bytes, value);
  out += as_text(bytes);
}

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

// Reads one body; false when it is not what encode_entry() writes.
class BodyReader {
 public:
  explicit BodyReader(Bytes body) : left_(body) {}

  bool read(std::vector<Change>& changes) {
    while (!left_.empty()) {
      Change change;
      std::uint8_t is_set = 0;
      if (!text(change.key) || !number(is_set)) return false;
      if (is_set != 0) {
        change.now.emplace();
        if (!number(change.now->version) || !text(change.now->value)) return false;
      }
      changes.push_back(std::move(change));
    }
    return true;
  }

 private:
  template <std::integral T>
  bool number(T& into) {
    if (left_.size() < sizeof(T)) return false;
    into = load_be<T>(left_.data());
    left_ = left_.subspan(sizeof(T));
    return true;
  }
  bool text(std::string& into) {
    std::uint32_t bytes = 0;
    if (!number(bytes) || left_.size() < bytes) return false;
    into = as_text(left_.first(bytes));
    left_ = left_.subspan(bytes);
    return true;
  }

  Bytes left_;
};

// The entry at the front of `bytes`, checked; none when there is no whole, sound one.
struct Entry {
  std::vector<Change> changes;
  std::uint64_t bytes = 0;
};
std::optional<Entry> read_entry(Bytes bytes) {
  if (bytes.size() < entry_head_bytes) return std::nullopt;
  const std::uint64_t body_bytes = load_be<std::uint32_t>(bytes.data());
  // No commit is empty.
  if (body_bytes == 0 || body_bytes > bytes.size() - entry_head_bytes) return std::nullopt;
  const auto body = bytes.subspan(entry_head_bytes, body_bytes);
  if (crc32c(body) != load_be<std::uint32_t>(bytes.data() + 4)) return std::nullopt;
  Entry entry{.changes = {}, .bytes = entry_head_bytes + body_bytes};
  if (!BodyReader(body).read(entry.changes)) return std::nullopt;
  return entry;
}

bool all_zero(Bytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{}; });
}

// Of an append that was cut short, the file has the front, or sectors in between are still zero.
bool looks_torn(Bytes tail, std::uint64_t position) {
  if (tail.size() < entry_head_bytes) return true;
  const std::uint64_t body_bytes = load_be<std::uint32_t>(tail.data());
  if (body_bytes > tail.size() - entry_head_bytes) {
    // All there, and only the length is wrong?
    return crc32c(tail.subspan(entry_head_bytes)) != load_be<std::uint32_t>(tail.data() + 4);
  }
  while (!tail.empty()) {
    const auto in_sector =
        std::min<std::uint64_t>(sector_bytes - position % sector_bytes, tail.size());
    if (all_zero(tail.first(in_sector))) return true;
    tail = tail.subspan(in_sector);
    position += in_sector;
  }
  return false;
}

// Where a length is damaged, what it says is of no use, so a sound entry is looked for at every
// byte.
bool entry_follows(Bytes tail) {
  for (std::size_t at = 1; at < tail.size(); ++at) {
    if (read_entry(tail.subspan(at))) return true;
  }
  return false;
}

Error corrupt(std::uint64_t position, std::string_view what) {
  const auto at = std::to_string(position);
  return {Errc::corrupt, "the entry at byte " + at + " " + std::string(what) +
                             "; nothing was changed. Restore the file from a copy, or cut it to " +
                             at + " bytes to lose what follows"};
}

std::optional<std::uint64_t> sealed_bytes(Bytes header) {
  const auto crc = load_be<std::uint32_t>(header.data() + header_crc_at);
  if (crc32c(header.first(header_crc_at)) != crc) return std::nullopt;
  return load_be<std::uint64_t>(header.data() + sealed_at);
}

// Damage is not taken for it: the crc of a header is where it was in all versions.
std::optional<int> later_version(Bytes content) {
  if (content.size() < journal_header_bytes) return std::nullopt;
  const auto begin = as_text(content.first(magic.size()));
  const char version = begin[version_at];
  if (!begin.starts_with(magic.substr(0, version_at)) || version < '2' || version > '9') {
    return std::nullopt;
  }
  if (!sealed_bytes(content.first(journal_header_bytes))) return std::nullopt;
  return version - '0';
}

}  // namespace

std::string encode_header(std::uint64_t sealed_bytes) {
  std::string header(magic);
  put(header, sealed_bytes);
  put(header, crc32c(as_bytes(header)));
  return header;
}

std::string encode_entry(const std::vector<Change>& changes) {
  std::string body;
  for (const auto& change : changes) {
    put_text(body, change.key);
    put(body, static_cast<std::uint8_t>(change.now ? 1 : 0));
    if (!change.now) continue;
    put(body, change.now->version);
    put_text(body, change.now->value);
  }
  std::string entry;
  put(entry, static_cast<std::uint32_t>(body.size()));
  put(entry, crc32c(as_bytes(body)));
  return entry + body;
}

Result<JournalScan> scan_journal(Bytes content,
                                 const std::function<void(std::vector<Change>)>& each) {
  if (const auto version = later_version(content)) {
    return Error{Errc::incompatible,
                 "is a journal of version " + std::to_string(*version) +
                     ", and this broker knows version 1; nothing was changed. Start the version of "
                     "Millrace that has written it"};
  }
  if (content.size() < journal_header_bytes || as_text(content.first(magic.size())) != magic) {
    return Error{Errc::corrupt,
                 "does not begin with the " + std::to_string(journal_header_bytes) +
                     " bytes of a header, the first of them \"" + std::string(magic) +
                     "\"; nothing was changed. Restore the file from a copy, or move it away to "
                     "begin with no topics"};
  }
  const auto sealed = sealed_bytes(content.first(journal_header_bytes));
  JournalScan scan{.bytes_good = journal_header_bytes, .seal_damaged = !sealed};
  while (auto entry = read_entry(content.subspan(scan.bytes_good))) {
    each(std::move(entry->changes));
    scan.bytes_good += entry->bytes;
  }
  const auto tail = content.subspan(scan.bytes_good);
  if (sealed && scan.bytes_good < *sealed) {
    return corrupt(scan.bytes_good, "is damaged or gone, although it was on disk as a whole");
  }
  if (entry_follows(tail)) return corrupt(scan.bytes_good, "is damaged and more follows it");
  if (!tail.empty() && !looks_torn(tail, scan.bytes_good)) {
    return corrupt(scan.bytes_good, "is damaged, and not as a crash damages it");
  }
  return scan;
}

}  // namespace millrace::standalone
