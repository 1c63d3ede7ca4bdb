#include "kernel/cli/log_check_index.h"

#include <algorithm>

#include <millrace/filelog/text.h>

namespace millrace::kernel::cli {

using filelog::OffsetIndex;
using filelog::say;
using filelog::TimeIndex;

namespace {

Result<std::optional<Buffer>> content_of(FileSystem& files, const std::string& path) {
  // A folder of that name is told of as what stands beside the log.
  if (const auto info = files.info(path); info && info->is_folder) return std::nullopt;
  auto content = read_file(files, path);
  if (content) return std::optional(std::move(*content));
  if (content.error().code == Errc::not_found) return std::nullopt;
  return content.error();
}

}  // namespace

Result<IndexCheck> IndexCheck::begin(FileSystem& files, std::string offset_index_path,
                                     std::string time_index_path, Offset base) {
  IndexCheck check(base);
  check.offset_path_ = std::move(offset_index_path);
  check.time_path_ = std::move(time_index_path);
  MR_TRY(check.offset_file_, content_of(files, check.offset_path_));
  MR_TRY(const auto time_file, content_of(files, check.time_path_));
  if (check.offset_file_) {
    // How far the log goes is compared at the end.
    const auto parsed = OffsetIndex::parse(*check.offset_file_, UINT64_MAX);
    if (parsed) check.rows_ = parsed->rows();
    if (!parsed) check.offset_wrong("its rows do not rise, or it ends within one");
  }
  if (time_file) {
    const auto parsed = TimeIndex::parse(*time_file);
    if (parsed) check.times_ = parsed->rows();
    if (!parsed) check.time_wrong("its rows do not rise, or it ends within one");
  }
  return check;
}

void IndexCheck::offset_wrong(std::string what) {
  if (!wrong_row_) {
    wrong_row_ = Wrong{offset_path_, row_at_ * OffsetIndex::row_bytes, std::move(what)};
  }
}

void IndexCheck::time_wrong(std::string what) {
  if (!wrong_time_) {
    wrong_time_ = Wrong{time_path_, time_at_ * TimeIndex::row_bytes, std::move(what)};
  }
}

// Rows in front of `position` were not found at a batch.
void IndexCheck::pass_rows(std::uint64_t position) {
  for (; row_at_ < rows_.size(); ++row_at_) {
    const auto at = static_cast<std::uint64_t>(rows_[row_at_].position);
    if (at >= position) break;
    offset_wrong(say("a row leads to byte ", at, " of the log, where no batch begins"));
  }
}

// Whoever looks for a time skips all up to a row that is older: none of that may be newer.
void IndexCheck::pass_times(std::int64_t offset) {
  for (; time_at_ < times_.size() && times_[time_at_].offset < offset; ++time_at_) {
    if (times_[time_at_].timestamp < newest_) {
      time_wrong(say("a row says that up to offset ", base_.value + times_[time_at_].offset,
                     " nothing is newer than ", times_[time_at_].timestamp, ", there is ",
                     newest_));
    }
  }
}

void IndexCheck::see(const SoundBatch& batch) {
  const auto& entry = batch.entry;
  pass_rows(entry.position);
  if (row_at_ < rows_.size() &&
      static_cast<std::uint64_t>(rows_[row_at_].position) == entry.position) {
    const auto row = rows_[row_at_];
    // Where a message of format V0 or V1 begins is inside it.
    if (entry.magic == 2 && row.offset < entry.base - base_) {
      offset_wrong(say("a row for offset ", base_.value + row.offset, " leads to the batch of ",
                       entry.base.value, " to ", entry.last.value));
    }
    ++row_at_;
  }
  pass_times(entry.last - base_);
  newest_ = std::max(newest_, entry.max_timestamp.ms);
}

void IndexCheck::see(const BadRegion& region) {
  pass_rows(region.position);
  while (row_at_ < rows_.size() &&
         static_cast<std::uint64_t>(rows_[row_at_].position) < region.end) {
    ++row_at_;
  }
}

std::vector<IndexCheck::Wrong> IndexCheck::finish(std::uint64_t log_bytes) && {
  pass_rows(log_bytes);
  if (row_at_ < rows_.size()) {
    offset_wrong(
        say("a row leads to byte ", rows_[row_at_].position, " of the log, which has ", log_bytes));
  }
  pass_times(std::numeric_limits<std::int64_t>::max());
  std::vector<Wrong> wrong;
  if (wrong_row_) wrong.push_back(std::move(*wrong_row_));
  if (wrong_time_) wrong.push_back(std::move(*wrong_time_));
  return wrong;
}

}  // namespace millrace::kernel::cli
