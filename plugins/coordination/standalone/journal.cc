#include "journal.h"

#include "journal_format.h"

namespace millrace::standalone {

Result<Journal::Opened> Journal::open(FileSystem& files, std::string path,
                                      const std::function<void(std::vector<Change>)>& each) {
  Opened opened;
  opened.journal = std::unique_ptr<Journal>(new Journal(files, path));
  auto& journal = *opened.journal;
  // From its first moment the file has a header, so that one without is known to be damaged.
  if (const auto found = files.info(path); !found) {
    if (found.error().code != Errc::not_found) return found.error();
    MR_CHECK(replace_file(files, path, as_bytes(encode_header(journal_header_bytes))));
  }
  MR_TRY(journal.file_, files.open(path, OpenMode::write));
  MR_TRY(const auto content, read_file(files, path));
  const auto scanned = scan_journal(content, each);
  if (!scanned) return Error{scanned.error().code, path + ": " + scanned.error().detail};
  opened.seal_damaged = scanned->seal_damaged;
  opened.bytes_cut = content.size() - scanned->bytes_good;
  if (opened.bytes_cut > 0) {
    MR_CHECK(journal.file_->truncate(scanned->bytes_good));
    MR_CHECK(journal.file_->sync());
  }
  journal.bytes_ = scanned->bytes_good;
  return opened;
}

Result<> Journal::append(const std::vector<Change>& changes) {
  if (broken_) {
    return Error{Errc::io, path_ +
                               ": an earlier write failed and could not be taken back; restart "
                               "the broker when the disk is well again"};
  }
  const auto entry = encode_entry(changes);
  const Bytes part = as_bytes(entry);
  auto written = file_->write_at(bytes_, std::span(&part, 1));
  if (written) written = file_->sync();
  if (!written) {
    broken_ = !file_->truncate(bytes_) || !file_->sync();
    return written.error();
  }
  bytes_ += entry.size();
  seal();
  return {};
}

// Not synced: it reaches the disk after what it speaks of, with the next entry or by the system.
// One that is never written leaves an older seal, which claims less.
void Journal::seal() {
  const auto header = encode_header(bytes_);
  const Bytes part = as_bytes(header);
  (void)file_->write_at(0, std::span(&part, 1));
}

Result<> Journal::rewrite(const std::vector<Change>& all) {
  const auto entry = encode_entry(all);
  const auto bytes = journal_header_bytes + entry.size();
  MR_CHECK(replace_file(files_, path_, as_bytes(encode_header(bytes) + entry)));
  MR_TRY(file_, files_.open(path_, OpenMode::write));
  bytes_ = bytes;
  broken_ = false;
  return {};
}

}  // namespace millrace::standalone
