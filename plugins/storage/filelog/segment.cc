#include "segment.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <millrace/bytes.h>
#include <millrace/filelog/names.h>
#include <millrace/filelog/text.h>

namespace millrace::filelog {

namespace {

constexpr std::int64_t relative_offset_max = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t segment_bytes_max = std::numeric_limits<std::int32_t>::max();

// Indexes so small stay in memory when their segment is let go of: they cost less than to be read
// again.
constexpr std::size_t kept_rows_max = 8;

// More files than these are not synced one by one.
constexpr std::size_t plans_one_by_one_max = 16;

Result<> write_rows(FileSystem& files, const std::string& path, std::uint64_t at, Bytes rows,
                    const SyncPlan& plan) {
  if (rows.empty() && !plan.complete) return {};
  MR_TRY(auto file, files.open(path, OpenMode::create));
  if (!rows.empty()) MR_CHECK(file->write_at(at, std::span(&rows, 1)));
  if (plan.complete) MR_CHECK(file->truncate(at + rows.size()));
  return plan.durable_rows ? file->sync() : Result<>();
}

Result<> cut_file(FileSystem& files, const std::string& path, std::uint64_t size) {
  auto file = files.open(path, OpenMode::write);
  if (!file) return file.error().code == Errc::not_found ? Result<>() : file.error();
  MR_TRY(const auto size_now, (*file)->size());
  if (size_now <= size) return {};
  MR_CHECK((*file)->truncate(size));
  return (*file)->sync();
}

// The last row of the time index of a segment of `offsets` offsets, without reading the others.
Timestamp newest_in(FileSystem& files, const std::string& time_index_path, std::int64_t offsets) {
  auto file = files.open(time_index_path, OpenMode::read);
  if (!file) return {};
  const auto size = (*file)->size();
  if (!size || *size < TimeIndex::row_bytes || *size % TimeIndex::row_bytes != 0) return {};
  std::byte row[TimeIndex::row_bytes];
  const auto bytes = (*file)->read_at(*size - sizeof row, row);
  if (!bytes || *bytes < sizeof row) return {};
  const auto ms = load_be<std::int64_t>(row);
  const auto offset = load_be<std::int32_t>(row + sizeof ms);
  return ms > 0 && offset >= 0 && offset < offsets ? Timestamp{ms} : Timestamp{};
}

}  // namespace

std::uint64_t total_bytes(std::span<const BatchParts> batches) noexcept {
  std::uint64_t bytes = 0;
  for (const auto& batch : batches) bytes += batch.header.size() + batch.body.size();
  return bytes;
}

Result<FoundRange> find_range(const ReadPlan& plan) {
  EntryScanner scanner(*plan.file, plan.scan_from, plan.file_end);
  std::optional<Entry> first;
  do {
    MR_TRY(first, scanner.next());
    if (!first) return FoundRange{.to_end = true};
  } while (first->last < plan.from);
  if (first->base >= plan.limit) return FoundRange{};
  if (first->bytes > plan.bytes_max && !plan.at_least_one) return FoundRange{};

  auto end = std::max(first->end(), plan.jump_to);
  scanner.skip_to(end);
  bool to_end = false;
  while (true) {
    MR_TRY(const auto entry, scanner.next());
    to_end = !entry;
    if (!entry || entry->base >= plan.limit) break;
    if (entry->end() - first->position > plan.bytes_max) break;
    end = entry->end();
  }
  return FoundRange{first->position, end - first->position, to_end};
}

Result<> write_indexes(FileSystem& files, const SyncPlan& plan) {
  MR_CHECK(write_rows(files, plan.offset_index_path, plan.offset_rows_from * OffsetIndex::row_bytes,
                      plan.offset_rows, plan));
  return write_rows(files, plan.time_index_path, plan.time_rows_from * TimeIndex::row_bytes,
                    plan.time_rows, plan);
}

Result<> sync_log(FileSystem& files, const SyncPlan& plan) {
  auto log = plan.log;
  if (!log) {
    MR_TRY(log, files.open(plan.log_path, OpenMode::write));
  }
  if (plan.log_bytes) MR_CHECK(log->truncate(*plan.log_bytes));
  return log->sync();
}

namespace {

Result<> check_patience(const std::string& folder, const SyncProgress& progress) {
  if (!progress.give_up) return {};
  return Error{Errc::cancelled, folder + ": closed before all of it was on disk"};
}

}  // namespace

Result<> write_out(FileSystem& files, const std::string& folder, std::span<SyncPlan> plans,
                   const SyncProgress& progress) {
  for (auto& plan : plans) {
    MR_CHECK(check_patience(folder, progress));
    const bool durable = std::exchange(plan.durable_rows, false);
    auto written = write_indexes(files, plan);
    plan.durable_rows = durable;
    MR_CHECK(std::move(written));
  }
  return {};
}

// After a sync of all there is little left to do, but to learn of writes that failed before.
Result<> sync_logs(FileSystem& files, const std::string& folder, std::span<const SyncPlan> plans,
                   SyncProgress& progress) {
  for (const auto& plan : plans) {
    MR_CHECK(check_patience(folder, progress));
    auto synced = sync_log(files, plan);
    progress.records_failed = !synced;
    MR_CHECK(std::move(synced));
  }
  return {};
}

Result<> carry_out(FileSystem& files, const std::string& folder, std::span<SyncPlan> plans,
                   SyncProgress& progress) {
  if (plans.size() > plans_one_by_one_max) {
    MR_CHECK(write_out(files, folder, plans, progress));
    MR_CHECK(files.sync_all(folder));
    return sync_logs(files, folder, plans, progress);
  }
  for (const auto& plan : plans) {
    MR_CHECK(check_patience(folder, progress));
    MR_CHECK(write_indexes(files, plan));
  }
  return sync_logs(files, folder, plans, progress);
}

// ---- opening ----

std::string Segment::path(std::string_view suffix) const {
  return source_.folder + "/" + offset_name(source_.base, suffix) + std::string(source_.mark);
}

Result<std::shared_ptr<Segment>> Segment::create(FileSystem& files, const SegmentSource& source,
                                                 Timestamp now) {
  std::shared_ptr<Segment> segment(new Segment(files, source));
  MR_TRY(segment->log_, files.open(segment->path(log_suffix), OpenMode::create));
  MR_CHECK(segment->log_->truncate(0));
  if (source.preallocated_bytes > 0) {
    segment->preallocated_ = true;
    MR_CHECK(segment->log_->truncate(std::min(source.preallocated_bytes, segment_bytes_max)));
  }
  segment->end_ = source.base;
  segment->created_ = segment->modified_ = now;
  segment->loaded_ = true;
  return segment;
}

Result<std::shared_ptr<Segment>> Segment::glance(FileSystem& files, const SegmentSource& source,
                                                 const FileInfo& log_file) {
  std::shared_ptr<Segment> segment(new Segment(files, source));
  segment->bytes_ = log_file.size;
  segment->modified_ = log_file.modified;
  segment->max_timestamp_ =
      newest_in(files, segment->path(time_index_suffix), source.next - source.base);
  segment->complete_ = true;
  return segment;
}

Result<std::shared_ptr<Segment>> Segment::open(FileSystem& files, const SegmentSource& source,
                                               Timestamp modified) {
  std::shared_ptr<Segment> segment(new Segment(files, source));
  MR_TRY(segment->log_, files.open(segment->path(log_suffix), OpenMode::write));
  MR_TRY(segment->bytes_, segment->log_->size());
  segment->created_ = segment->modified_ = modified;
  segment->complete_ = source.next.value >= 0;
  segment->loaded_ = true;
  segment->read_indexes();
  return segment;
}

Result<std::shared_ptr<Segment>> Segment::load(FileSystem& files, const SegmentSource& source,
                                               Timestamp modified) {
  MR_TRY(auto segment, open(files, source, modified));
  const auto file_bytes = segment->bytes_;
  const auto rows = segment->offsets_.rows().size();
  auto times = segment->times_;
  // What stands behind the last row is walked, so that an index which ends early is completed.
  std::optional<OffsetIndex::Row> row;
  if (segment->indexes_sound_ && rows > 0) row = segment->offsets_.rows().back();
  if (row && !segment->leads_to_its_batch(*row)) row.reset();
  segment->restart_behind(row);
  MR_TRY(const auto damage, segment->walk(file_bytes, false));
  if (damage) return Error{Errc::corrupt, damage->what};
  segment->complete(source.next);
  const bool as_stored = segment->indexes_sound_ && segment->offsets_.rows().size() == rows &&
                         times.newest() == segment->times_.newest();
  if (as_stored) segment->times_ = std::move(times);
  // A cache that cannot be written, or that a crash takes, is rebuilt the next time.
  auto plan = segment->plan_sync();
  plan.durable_rows = false;
  if (as_stored || write_indexes(files, plan)) segment->synced(plan);
  segment->dirty_ = false;
  return segment;
}

Result<std::shared_ptr<Segment>> Segment::check(FileSystem& files, const SegmentSource& source,
                                                Timestamp modified, Offset sound_below,
                                                std::optional<Damage>& damage) {
  MR_TRY(auto segment, open(files, source, modified));
  const auto file_bytes = segment->bytes_;
  std::optional<OffsetIndex::Row> row;
  if (segment->indexes_sound_) row = segment->offsets_.find(segment->relative(sound_below) - 1);
  if (row && !segment->leads_to_its_batch(*row)) row.reset();
  segment->restart_behind(row);
  MR_TRY(damage, segment->walk(file_bytes, true));
  if (segment->bytes_ > 0) {
    EntryScanner scanner(*segment->log_, 0, segment->bytes_);
    MR_TRY(const auto first, scanner.next());
    segment->first_timestamp_ = first->max_timestamp;
  }
  return segment;
}

void Segment::read_indexes() {
  const auto offset_rows = read_file(files_, path(offset_index_suffix));
  const auto time_rows = read_file(files_, path(time_index_suffix));
  if (!offset_rows || !time_rows) return;
  auto offsets = OffsetIndex::parse(*offset_rows, bytes_);
  auto times = TimeIndex::parse(*time_rows);
  if (!offsets || !times) return;
  offsets_ = std::move(*offsets);
  times_ = std::move(*times);
  offset_rows_written_ = offsets_.rows().size();
  time_rows_written_ = times_.rows().size();
  indexes_sound_ = true;
}

// The newest rows may not have reached the disk as they were written.
bool Segment::leads_to_its_batch(OffsetIndex::Row row) const {
  EntryScanner scanner(*log_, static_cast<std::uint64_t>(row.position), bytes_);
  const auto entry = scanner.next();
  if (!entry || !*entry || !check_crc(*log_, **entry)) return false;
  // Where a message of format V0 or V1 begins is inside it.
  return (*entry)->magic < 2 || relative((*entry)->base) <= row.offset;
}

void Segment::restart_behind(std::optional<OffsetIndex::Row> row) {
  const std::int64_t kept = row ? row->offset : -1;
  offsets_.keep_through(kept);
  times_.keep_through(kept);
  offset_rows_written_ = std::min(offset_rows_written_, offsets_.rows().size());
  time_rows_written_ = std::min(time_rows_written_, times_.rows().size());
  bytes_ = row ? static_cast<std::uint64_t>(row->position) : 0;
  bytes_since_row_ = 0;
  end_ = source_.base;
  max_timestamp_ = {};
  max_timestamp_offset_ = {};
  if (!times_.rows().empty()) {
    max_timestamp_.ms = times_.rows().back().timestamp;
    max_timestamp_offset_ = source_.base + times_.rows().back().offset;
  }
}

Result<std::optional<Damage>> Segment::walk(std::uint64_t file_bytes, bool check_crcs) {
  EntryScanner scanner(*log_, bytes_, file_bytes);
  while (true) {
    auto entry = scanner.next();
    if (entry && !*entry) return std::nullopt;
    auto sound = entry ? Result<>() : Result<>(entry.error());
    if (sound) sound = check_order(**entry);
    if (sound && check_crcs) sound = check_crc(*log_, **entry);
    if (sound) {
      if (bytes_ == 0) first_timestamp_ = (*entry)->max_timestamp;
      account((*entry)->last, (*entry)->bytes, (*entry)->max_timestamp);
      continue;
    }
    if (sound.error().code == Errc::out_of_range) {
      return Damage{.position = bytes_, .torn = true, .what = sound.error().detail};
    }
    if (sound.error().code != Errc::corrupt) return sound.error();
    MR_TRY(const auto zeros, all_zero(*log_, bytes_, file_bytes));
    return Damage{bytes_, zeros, zeros,
                  zeros ? say(log_->path(), ": byte ", bytes_, ": zeros up to the end of the file")
                        : sound.error().detail};
  }
}

Result<> Segment::check_order(const Entry& entry) const {
  const auto wrong = [&](std::string what) {
    return Error{Errc::corrupt, say(log_->path(), ": byte ", entry.position, ": batch of offsets ",
                                    entry.base.value, " to ", entry.last.value, " ", what)};
  };
  if (entry.base < end_) return wrong(say("where ", end_.value, " or more is due"));
  if (source_.next.value >= 0 && entry.last >= source_.next) {
    return wrong(say("reaches into the next segment, which starts at ", source_.next.value));
  }
  if (relative(entry.last) > relative_offset_max) return wrong("is too far from the file's name");
  return {};
}

// ---- changing ----

bool Segment::has_room(std::span<const BatchParts> batches, const LogOptions& options,
                       Timestamp now) const {
  if (relative(batches.back().last_offset) > relative_offset_max) return false;
  if (bytes_ == 0) return true;
  const auto bytes = bytes_ + total_bytes(batches);
  if (bytes > std::min(options.segment_bytes, segment_bytes_max)) return false;
  if ((offsets_.rows().size() + batches.size()) * OffsetIndex::row_bytes >
          options.segment_index_bytes ||
      (times_.rows().size() + batches.size() + 1) * TimeIndex::row_bytes >
          options.segment_index_bytes) {
    return false;
  }
  const auto newest = batches.back().max_timestamp;
  const bool by_records = first_timestamp_.ms >= 0 && newest.ms >= 0;
  const auto age_ms = by_records ? newest.ms - first_timestamp_.ms : now.ms - created_.ms;
  return std::chrono::milliseconds(age_ms) <= options.segment_age;
}

Result<> Segment::check_reach(std::span<const BatchParts> batches) const {
  const auto bytes = total_bytes(batches);
  const auto last = batches.back().last_offset;
  if (bytes <= segment_bytes_max && relative(last) <= relative_offset_max) return {};
  return Error{Errc::too_large,
               say(path(log_suffix), ": an append of ", bytes, " bytes up to offset ", last.value,
                   "; a segment ends with ", segment_bytes_max, " bytes or ", relative_offset_max,
                   " offsets")};
}

Result<> Segment::append(std::span<const BatchParts> batches, Timestamp now, bool& broken) {
  MR_CHECK(check_reach(batches));
  std::vector<Bytes> parts;
  parts.reserve(batches.size() * 2);
  for (const auto& batch : batches) {
    parts.push_back(batch.header);
    parts.push_back(batch.body);
  }
  MR_TRY(const auto log, file());
  if (auto written = log->write_at(bytes_, parts); !written) {
    broken = !log->truncate(bytes_);
    return written.error();
  }
  add_entries(batches, now);
  return {};
}

Result<> Segment::write_ahead(std::uint64_t at, std::span<const Bytes> piece, bool entry) {
  MR_TRY(const auto log, file());
  ahead_ = true;
  ahead_entry_ = ahead_entry_ || entry;
  return log->write_at(bytes_ + at, piece);
}

void Segment::append_written(std::span<const BatchParts> batches, Timestamp now) {
  ahead_ = ahead_entry_ = false;
  add_entries(batches, now);
}

Result<> Segment::drop_ahead() {
  if (!ahead_) return {};
  MR_TRY(const auto log, file());
  MR_CHECK(log->truncate(bytes_));
  // After a power cut it would stand where replicas have what is appended now, in the same epoch.
  if (ahead_entry_) MR_CHECK(log->sync());
  ahead_ = ahead_entry_ = preallocated_ = false;
  return {};
}

void Segment::add_entries(std::span<const BatchParts> batches, Timestamp now) {
  if (bytes_ == 0) first_timestamp_ = batches.front().max_timestamp;
  for (const auto& batch : batches) {
    account(batch.last_offset, batch.header.size() + batch.body.size(), batch.max_timestamp);
  }
  modified_ = now;
  dirty_ = true;
}

void Segment::account(Offset last, std::uint64_t bytes, Timestamp timestamp) {
  if (timestamp > max_timestamp_) {
    max_timestamp_ = timestamp;
    max_timestamp_offset_ = last;
  }
  if (bytes_since_row_ > source_.index_interval_bytes) {
    offsets_.add({static_cast<std::int32_t>(relative(last)), static_cast<std::int32_t>(bytes_)});
    times_.add({max_timestamp_.ms, static_cast<std::int32_t>(relative(max_timestamp_offset_))});
    bytes_since_row_ = 0;
  }
  bytes_since_row_ += bytes;
  bytes_ += bytes;
  end_ = last + 1;
}

Result<> Segment::drop_preallocated() {
  if (!preallocated_) return {};
  MR_TRY(const auto log, file());
  MR_CHECK(log->truncate(bytes_));
  preallocated_ = false;
  return {};
}

void Segment::complete(Offset next) {
  source_.next = next;
  complete_ = true;
  dirty_ = true;
  times_.add({max_timestamp_.ms, static_cast<std::int32_t>(relative(max_timestamp_offset_))});
}

Result<std::uint64_t> Segment::plan_truncation(Offset first_removed) {
  MR_TRY(const auto log, file());
  EntryScanner scanner(*log, position_at_or_before(first_removed), bytes_);
  std::optional<Entry> entry;
  do {
    MR_TRY(entry, scanner.next());
  } while (entry && entry->last < first_removed);
  if (!entry) return bytes_;
  if (entry->base >= first_removed) return entry->position;
  return Error{Errc::invalid_argument,
               say(log->path(), ": cannot cut at offset ", first_removed.value,
                   ", within the batch of ", entry->base.value, " to ", entry->last.value)};
}

Result<> Segment::truncate(std::uint64_t position) {
  MR_CHECK(file());
  if (log_.use_count() > 1) {
    MR_CHECK(replace_by_copy(position));
  } else {
    MR_CHECK(log_->truncate(position));
    MR_CHECK(log_->sync());
  }
  source_.next = {};
  complete_ = false;
  const auto row = offsets_.find_by_position(position, relative_offset_max);
  const bool removed = row && static_cast<std::uint64_t>(row->position) == position;
  restart_behind(removed ? offsets_.find(row->offset - 1) : row);
  MR_TRY(const auto damage, walk(position, false));
  if (damage) return Error{Errc::corrupt, damage->what};
  MR_CHECK(
      cut_file(files_, path(offset_index_suffix), offset_rows_written_ * OffsetIndex::row_bytes));
  return cut_file(files_, path(time_index_suffix), time_rows_written_ * TimeIndex::row_bytes);
}

// Readers keep the old file, whose bytes stay as they are.
Result<> Segment::replace_by_copy(std::uint64_t bytes) {
  constexpr std::size_t copy_chunk_bytes = 1 << 20;
  const auto temporary = path(log_suffix) + std::string(temporary_mark);
  {
    MR_TRY(auto copy, files_.open(temporary, OpenMode::create));
    MR_CHECK(copy->truncate(0));
    std::vector<std::byte> chunk(std::min<std::uint64_t>(copy_chunk_bytes, bytes));
    for (std::uint64_t at = 0; at < bytes;) {
      const auto wanted = std::min<std::uint64_t>(chunk.size(), bytes - at);
      MR_TRY(const auto got, log_->read_at(at, MutableBytes(chunk).first(wanted)));
      if (got == 0) return Error{Errc::io, log_->path() + ": became shorter while it was copied"};
      const auto part = Bytes(chunk).first(got);
      MR_CHECK(copy->write_at(at, std::span(&part, 1)));
      at += got;
    }
    MR_CHECK(copy->sync());
  }
  MR_CHECK(files_.rename(temporary, path(log_suffix)));
  MR_CHECK(files_.sync_folder(source_.folder));
  MR_TRY(log_, files_.open(path(log_suffix), OpenMode::write));
  return {};
}

// ---- open and closed ----

// A file is open once, however often it was let go: truncate() must know of every reader.
Result<std::shared_ptr<File>> Segment::file() {
  if (!log_) log_ = readers_.lock();
  if (!log_) {
    MR_TRY(log_, files_.open(path(log_suffix), OpenMode::write));
  }
  return log_;
}

void Segment::take_over(const Segment& before) {
  if (auto held = before.log_ ? before.log_ : before.readers_.lock()) log_ = std::move(held);
}

void Segment::take_name(Timestamp modified) {
  source_.mark = {};
  modified_ = modified;
  dirty_ = false;
  log_.reset();  // it is opened by its name when it is needed
}

void Segment::let_go() noexcept {
  if (log_) readers_ = log_;
  log_.reset();
  const bool rows_written =
      offset_rows_written_ == offsets_.rows().size() && time_rows_written_ == times_.rows().size();
  if (!complete_ || dirty_ || !rows_written) return;
  if (offsets_.rows().size() + times_.rows().size() <= kept_rows_max) return;
  offsets_ = {};
  times_ = {};
  loaded_ = false;
}

// ---- plans ----

std::uint64_t Segment::position_at_or_before(Offset offset) const {
  const auto row = offsets_.find(relative(offset));
  return row ? static_cast<std::uint64_t>(row->position) : 0;
}

std::uint64_t Segment::position_behind(Offset offset) const {
  const auto& rows = offsets_.rows();
  const auto row = std::ranges::upper_bound(rows, relative(offset), {}, &OffsetIndex::Row::offset);
  return row == rows.end() ? bytes_ : static_cast<std::uint64_t>(row->position);
}

Result<ReadPlan> Segment::plan_read(Offset from, Offset limit, std::uint64_t bytes_max,
                                    bool at_least_one) {
  MR_TRY(const auto log, file());
  ReadPlan plan{.file = log,
                .file_end = bytes_,
                .scan_from = position_at_or_before(from),
                .found_by = position_behind(from),
                .from = from,
                .limit = limit,
                .bytes_max = bytes_max,
                .at_least_one = at_least_one};
  const auto room = std::min(bytes_max, bytes_);
  if (const auto row = offsets_.find_by_position(plan.scan_from + room, relative(limit))) {
    plan.jump_to = static_cast<std::uint64_t>(row->position);
  }
  return plan;
}

std::uint64_t Segment::scan_for(Timestamp time) const {
  const auto row = times_.find_older(time.ms);
  return row ? position_at_or_before(source_.base + row->offset) : 0;
}

SyncPlan Segment::plan_sync() const {
  return {.log = log_,
          .log_path = path(log_suffix),
          .offset_index_path = path(offset_index_suffix),
          .time_index_path = path(time_index_suffix),
          .offset_rows_from = offset_rows_written_,
          .time_rows_from = time_rows_written_,
          .offset_rows = offsets_.encode(offset_rows_written_),
          .time_rows = times_.encode(time_rows_written_),
          .log_bytes = complete_ && preallocated_ ? std::optional(bytes_) : std::nullopt,
          .complete = complete_,
          .durable_rows = complete_};
}

void Segment::synced(const SyncPlan& plan) {
  offset_rows_written_ = plan.offset_rows_from + plan.offset_rows.size() / OffsetIndex::row_bytes;
  time_rows_written_ = plan.time_rows_from + plan.time_rows.size() / TimeIndex::row_bytes;
  if (plan.log_bytes) preallocated_ = false;
}

}  // namespace millrace::filelog
