#include "journal.h"

#include <optional>

#include <millrace/bytes.h>

namespace millrace::standalone {

namespace {

constexpr std::size_t entry_head_bytes = 8;

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

std::string encode(const std::vector<Change>& changes) {
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

// Reads one body; false when it is not what encode() writes.
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
  // No commit is empty; zeros are a tail that never reached the disk.
  if (body_bytes == 0 || body_bytes > bytes.size() - entry_head_bytes) return std::nullopt;
  const auto body = bytes.subspan(entry_head_bytes, body_bytes);
  if (crc32c(body) != load_be<std::uint32_t>(bytes.data() + 4)) return std::nullopt;
  Entry entry{.changes = {}, .bytes = entry_head_bytes + body_bytes};
  if (!BodyReader(body).read(entry.changes)) return std::nullopt;
  return entry;
}

// The whole entries at the front of a file.
struct Scan {
  std::uint64_t bytes_good = 0;
  bool corrupt = false;  // stopped at damage with more behind it
};

Scan scan(Bytes content, const std::function<void(std::vector<Change>)>& each) {
  Scan result;
  while (auto entry = read_entry(content.subspan(result.bytes_good))) {
    each(std::move(entry->changes));
    result.bytes_good += entry->bytes;
  }
  // A torn entry is the last. Where a length is damaged, what it says is of no use, so what follows
  // is looked for at every byte.
  for (auto at = result.bytes_good + 1; at < content.size() && !result.corrupt; ++at) {
    result.corrupt = read_entry(content.subspan(at)).has_value();
  }
  return result;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

Result<Journal::Opened> Journal::open(FileSystem& files, std::string path,
                                      const std::function<void(std::vector<Change>)>& each) {
  Opened opened;
  opened.journal = std::unique_ptr<Journal>(new Journal(files, path));
  auto& journal = *opened.journal;
  MR_TRY(journal.file_, files.open(path, OpenMode::create));
  MR_CHECK(files.sync_folder(folder_of(path)));
  MR_TRY(const auto content, read_file(files, path));
  const auto scanned = scan(content, each);
  if (scanned.corrupt) {
    return Error{
        Errc::corrupt,
        path + ": the entry at byte " + std::to_string(scanned.bytes_good) +
            " is damaged and more follows it; nothing was changed. Restore the file from a "
            "copy, or cut it to " +
            std::to_string(scanned.bytes_good) + " bytes to lose what follows"};
  }
  opened.bytes_cut = content.size() - scanned.bytes_good;
  if (opened.bytes_cut > 0) {
    MR_CHECK(journal.file_->truncate(scanned.bytes_good));
    MR_CHECK(journal.file_->sync());
  }
  journal.bytes_ = scanned.bytes_good;
  return opened;
}

Result<> Journal::append(const std::vector<Change>& changes) {
  if (broken_) {
    return Error{Errc::io, path_ +
                               ": an earlier write failed and could not be taken back; restart "
                               "the broker when the disk is well again"};
  }
  const auto entry = encode(changes);
  const Bytes part = as_bytes(entry);
  auto written = file_->write_at(bytes_, std::span(&part, 1));
  if (written) written = file_->sync();
  if (!written) {
    broken_ = !file_->truncate(bytes_) || !file_->sync();
    return written.error();
  }
  bytes_ += entry.size();
  return {};
}

Result<> Journal::rewrite(const std::vector<Change>& all) {
  const auto entry = encode(all);
  MR_CHECK(replace_file(files_, path_, as_bytes(entry)));
  MR_TRY(file_, files_.open(path_, OpenMode::write));
  bytes_ = entry.size();
  broken_ = false;
  return {};
}

}  // namespace millrace::standalone
