#include "rewrite.h"

#include <limits>

#include <millrace/filelog/names.h>
#include <millrace/filelog/text.h>

#include "file_log.h"

namespace millrace::filelog {

namespace {

constexpr std::uint64_t segment_bytes_max = std::numeric_limits<std::int32_t>::max();

std::string swap_path(const std::string& folder, Offset base) {
  return folder + "/" + offset_name(base, log_suffix) + std::string(swap_mark);
}

std::string doomed(const std::string& path) { return path + std::string(deleted_mark); }

}  // namespace

Result<> withdraw_swap(FileSystem& files, const std::string& folder, RewriteClaim& claim) {
  if (!claim.swap) return {};
  const auto swap = swap_path(folder, claim.from);
  MR_CHECK(files.rename(swap, doomed(swap)));
  claim.swap = false;
  return files.sync_folder(folder);
}

FileRewrite::FileRewrite(Needs needs, std::shared_ptr<RewriteClaim> claim)
    : needs_(std::move(needs)), claim_(std::move(claim)), files_(needs_.environment.files()) {}

// The names go at once, so that another rewrite may use them; the files go by a worker. Where a
// swap file could not be withdrawn what stands beside it stays, for recovery.
FileRewrite::~FileRewrite() {
  if (exchanged_ || !begun_) return;
  {
    const std::lock_guard lock(claim_->mutex);
    if (claim_->swap) return;
  }
  std::vector<std::string> paths{path(log_suffix, cleaned_mark)};
  if (staging_) {
    paths.push_back(end_marker());
    paths.push_back(path(aborted_suffix, swap_mark));
    for (const auto suffix : {offset_index_suffix, time_index_suffix}) {
      paths.push_back(path(suffix, cleaned_mark));
      paths.push_back(path(suffix, swap_mark));
    }
  }
  std::vector<std::string> gone;
  for (auto& name : paths) {
    if (files_.rename(name, doomed(name))) gone.push_back(doomed(name));
  }
  if (staging_) gone.push_back(doomed(swap_path(needs_.source.folder, claim_->from)));
  needs_.environment.workers().submit([&files = files_, gone = std::move(gone)] {
    for (const auto& name : gone) (void)files.remove(name);
  });
}

std::string FileRewrite::path(std::string_view suffix, std::string_view mark) const {
  return needs_.source.folder + "/" + offset_name(claim_->from, suffix) + std::string(mark);
}

std::string FileRewrite::end_marker() const {
  return needs_.source.folder + "/" + offset_name(claim_->to, end_suffix) + std::string(swap_mark);
}

// ---- writing ----

Result<> FileRewrite::begin() {
  if (segment_) return {};
  auto source = needs_.source;
  source.mark = cleaned_mark;
  source.preallocated_bytes = 0;
  begun_ = true;
  MR_TRY(segment_, Segment::create(files_, source, needs_.environment.clock().wall()));
  return {};
}

Result<> FileRewrite::check_order(std::span<const BatchParts> batches) const {
  auto due = segment_->end();
  for (const auto& batch : batches) {
    if (batch.base_offset < due || batch.last_offset < batch.base_offset ||
        batch.last_offset >= claim_->to) {
      return Error{Errc::out_of_range,
                   say(needs_.source.folder, ": a rewrite has offsets ", batch.base_offset.value,
                       " to ", batch.last_offset.value, " where ", due.value, " to ",
                       claim_->to.value - 1, " are due")};
    }
    due = batch.last_offset + 1;
  }
  return {};
}

Result<> FileRewrite::append(std::span<const BatchParts> batches) {
  if (batches.empty()) return {};
  MR_CHECK(begin());
  MR_CHECK(check_order(batches));
  const auto bytes = total_bytes(batches);
  if (bytes > segment_bytes_max - bytes_) {
    return Error{Errc::too_large, say(path(log_suffix, cleaned_mark), ": ", bytes_, " bytes and ",
                                      bytes, " more; a segment ends with ", segment_bytes_max)};
  }
  MR_CHECK(needs_.space.admit(bytes));
  bool broken = false;
  MR_CHECK(segment_->append(batches, needs_.environment.clock().wall(), broken));
  bytes_ += bytes;
  return {};
}

// ---- the exchange ----

Task<> FileRewrite::commit() {
  if (staging_) co_return Error{Errc::invalid_argument, "a rewrite is committed once"};
  if (!claim_->log) {
    co_return Error{Errc::closed, needs_.source.folder + ": the log of this rewrite is closed"};
  }
  co_return co_await claim_->log->exchange(*this);
}

Result<> FileRewrite::stage(const std::vector<Offset>& replaced, const KeepDurable& keep_durable) {
  MR_CHECK(begin());
  staging_ = true;
  segment_->complete(claim_->to);
  const auto plan = segment_->plan_sync();
  MR_CHECK(write_indexes(files_, plan));
  MR_CHECK(sync_log(files_, plan));
  segment_->synced(plan);
  MR_CHECK(join_aborted(replaced));
  const std::lock_guard lock(claim_->mutex);
  if (claim_->lost) {
    return Error{Errc::conflict, say(needs_.source.folder, ": offsets ", claim_->from.value, " to ",
                                     claim_->to.value, " have changed while they were rewritten")};
  }
  MR_CHECK(keep_durable());
  return name_swaps();
}

// One text for all of them, as the kernel writes them: rows, one behind the other.
Result<> FileRewrite::join_aborted(const std::vector<Offset>& replaced) {
  std::vector<Buffer> texts;
  std::vector<Bytes> parts;
  for (const auto base : replaced) {
    auto text = read_file(files_, needs_.source.folder + "/" + offset_name(base, aborted_suffix));
    if (!text && text.error().code != Errc::not_found) return text.error();
    if (text) texts.push_back(std::move(*text));
  }
  if (texts.empty()) return {};
  for (const auto& text : texts) parts.emplace_back(text);
  aborted_ = true;
  MR_TRY(const auto file, files_.open(path(aborted_suffix, swap_mark), OpenMode::create));
  MR_CHECK(file->truncate(0));
  MR_CHECK(file->write_at(0, parts));
  return file->sync();
}

// The log comes last: with its name a crash finishes the exchange, and needs the rest for it.
Result<> FileRewrite::name_swaps() {
  MR_CHECK(files_.open(end_marker(), OpenMode::create));
  for (const auto suffix : {offset_index_suffix, time_index_suffix}) {
    MR_CHECK(files_.rename(path(suffix, cleaned_mark), path(suffix, swap_mark)));
  }
  MR_CHECK(files_.rename(path(log_suffix, cleaned_mark), path(log_suffix, swap_mark)));
  claim_->swap = true;
  return files_.sync_folder(needs_.source.folder);
}

void FileRewrite::leave_to_recovery() {
  const std::lock_guard lock(claim_->mutex);
  claim_->swap = false;
  exchanged_ = true;
}

Result<std::shared_ptr<Segment>> FileRewrite::take_names(Timestamp modified) {
  for (const auto suffix : {offset_index_suffix, time_index_suffix}) {
    MR_CHECK(files_.rename(path(suffix, swap_mark), path(suffix, {})));
  }
  if (aborted_) {
    MR_CHECK(files_.rename(path(aborted_suffix, swap_mark), path(aborted_suffix, {})));
  }
  MR_CHECK(files_.rename(path(log_suffix, swap_mark), path(log_suffix, {})));
  MR_CHECK(files_.remove(end_marker()));
  segment_->take_name(modified);
  return std::move(segment_);
}

}  // namespace millrace::filelog
