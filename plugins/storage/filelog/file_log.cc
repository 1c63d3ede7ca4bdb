#include "file_log.h"

#include <algorithm>
#include <limits>

#include <millrace/filelog/names.h>
#include <millrace/filelog/text.h>

#include "aux_files.h"
#include "rewrite.h"

namespace millrace::filelog {

namespace {

// How far behind a read's limit in bytes its end may be looked for: an index interval, and heads.
constexpr std::uint64_t scan_margin_bytes = 65'536;

// What a shard writes before others have a turn: some 0.5 ms, where the system has to find the
// memory.
constexpr std::size_t piece_bytes = 256UL << 10;

// Each range that a reader holds keeps a file open.
constexpr std::size_t ranges_per_read_max = 64;

Error out_of_range(const std::string& folder, std::string_view what, Offset offset, Offset start,
                   Offset end) {
  return {Errc::out_of_range, say(folder, ": ", what, " offset ", offset.value, "; the log has ",
                                  start.value, " to ", end.value)};
}

bool same_bytes(const BatchParts& one, const BatchParts& other) {
  return one.base_offset == other.base_offset && one.last_offset == other.last_offset &&
         one.body.data() == other.body.data() && one.body.size() == other.body.size() &&
         std::ranges::equal(one.header.bytes(), other.header.bytes());
}

// So many bytes of them have no entry yet. Of old formats each message is one.
std::uint64_t bytes_before_entry(std::span<const BatchParts> batches) {
  return batches.front().header.empty() ? 0 : total_bytes(batches.first(1));
}

// Hands out the bytes of batches in their order.
class Pieces {
 public:
  explicit Pieces(std::span<const BatchParts> batches) {
    for (const auto& batch : batches) {
      left_.push_back(batch.header);
      left_.push_back(batch.body);
    }
  }
  /// Empty at the end.
  std::vector<Bytes> next(std::size_t bytes_max) {
    std::vector<Bytes> piece;
    while (bytes_max > 0 && at_ < left_.size()) {
      auto& part = left_[at_];
      const auto taken = std::min(part.size(), bytes_max);
      if (taken > 0) piece.push_back(part.first(taken));
      part = part.subspan(taken);
      bytes_max -= taken;
      if (part.empty()) ++at_;
    }
    return piece;
  }

 private:
  std::vector<Bytes> left_;
  std::size_t at_ = 0;
};

}  // namespace

FileLog::FileLog(LogHost host, std::string folder, LogOptions options, RecoveredLog recovered,
                 std::shared_ptr<OpenMark> mark)
    : host_(std::move(host)),
      folder_(std::move(folder)),
      options_(options),
      mark_(std::move(mark)),
      recent_(host_.recent),
      segments_(std::move(recovered.segments)),
      start_(recovered.start),
      end_(recovered.end),
      recovery_point_(recovered.durable),
      as_closed_(recovered.as_closed) {
  mark_->facts->durable_end = recovery_point_.value;
  auto& claimed = mark_->facts->claimed_below;
  claimed = std::min(claimed.load(), recovery_point_.value);
  for (const auto& segment : segments_) {
    if (segment->loaded()) host_.open_files.used(segment);
  }
}

Result<> FileLog::usable() const {
  if (closed_) return Error{Errc::closed, folder_ + ": the log is closed"};
  if (failed_) return *failed_;
  return {};
}

SegmentSource FileLog::source(Offset base, Offset next) const {
  return {folder_, base, next, options_.index_interval_bytes,
          options_.preallocate ? options_.segment_bytes : 0};
}

std::size_t FileLog::segment_at(Offset offset) const {
  const auto behind = std::ranges::upper_bound(segments_, offset, {},
                                               [](const auto& segment) { return segment->base(); });
  return behind == segments_.begin() ? 0 : static_cast<std::size_t>(behind - segments_.begin() - 1);
}

Offset FileLog::next_of(std::size_t at) const {
  return at + 1 < segments_.size() ? segments_[at + 1]->base() : end_;
}

// ---- appending ----

Result<> FileLog::check_order(std::span<const BatchParts> batches) const {
  if (batches.empty()) return Error{Errc::invalid_argument, folder_ + ": an append of nothing"};
  auto due = end_;
  for (const auto& batch : batches) {
    if (batch.base_offset < due || batch.last_offset < batch.base_offset) {
      return Error{Errc::internal,
                   say(folder_, ": append of offsets ", batch.base_offset.value, " to ",
                       batch.last_offset.value, " where ", due.value, " or more is due")};
    }
    due = batch.last_offset + 1;
  }
  return {};
}

Result<> FileLog::make_room(std::span<const BatchParts> batches, Timestamp now) {
  MR_CHECK(host_.space.admit(total_bytes(batches)));
  if (active().has_room(batches, options_, now)) return {};
  MR_CHECK(roll());
  // Of a compacted log what follows may be further away than a segment reaches.
  const bool behind = batches.front().base_offset > active().base();
  if (!behind || active().has_room(batches, options_, now)) return {};
  return add_segment(batches.front().base_offset);
}

Result<Ticket> FileLog::append(std::span<const BatchParts> batches) {
  MR_CHECK(usable());
  MR_CHECK(check_order(batches));
  const auto now = host_.environment.clock().wall();
  const bool there = is_ahead(batches);
  if (!there) {
    MR_CHECK(drop_ahead());
    MR_CHECK(make_room(batches, now));
  }
  host_.open_files.used(segments_.back());
  if (end_ == Offset{0}) folder_changed_ = true;  // nothing of a new log was synced
  if (there) {
    active().append_written(batches, now);
    ahead_.reset();
  } else {
    bool broken = false;
    auto appended = active().append(batches, now, broken);
    if (!appended) {
      if (broken) failed_ = appended.error();
      return appended.error();
    }
  }
  as_closed_ = false;
  recent_.add(end_, batches);
  end_ = active().end();
  return Ticket{++tickets_};
}

Task<> FileLog::written(Ticket /*ticket*/) { co_return {}; }

// ---- ahead of an append ----

Task<std::shared_ptr<const void>> FileLog::write_ahead(std::vector<BatchParts> batches) {
  MR_CO_CHECK(usable());
  MR_CO_TRY(const auto pass, background_.enter());
  MR_CO_CHECK(check_order(batches));
  MR_CO_CHECK(drop_ahead());
  MR_CO_CHECK(make_room(batches, host_.environment.clock().wall()));
  MR_CO_CHECK(active().check_reach(batches));
  const auto ahead = std::make_shared<Ahead>(std::move(batches));
  ahead_ = ahead;
  as_closed_ = false;
  auto writing = write_in_turns(ahead);
  auto written = co_await std::move(writing);
  if (!written) {
    if (ahead_.lock() == ahead) (void)drop_ahead();
    co_return std::move(written).error();
  }
  co_return ahead;
}

// Ends early once it is void: what stands behind the end now is somebody else's.
Task<> FileLog::write_in_turns(std::shared_ptr<Ahead> ahead) {
  Pieces pieces(ahead->batches);
  const auto none_before = bytes_before_entry(ahead->batches);
  auto piece = pieces.next(piece_bytes);
  for (std::uint64_t at = 0; !piece.empty(); at += piece_bytes) {
    MR_CO_CHECK(co_await host_.turns.wait());
    if (ahead_.lock() != ahead) co_return {};
    host_.open_files.used(segments_.back());
    MR_CO_CHECK(active().write_ahead(at, piece, at + piece_bytes >= none_before));
    piece = pieces.next(piece_bytes);
  }
  ahead->whole = true;
  co_return {};
}

bool FileLog::is_ahead(std::span<const BatchParts> batches) const {
  const auto ahead = ahead_.lock();
  return ahead && ahead->whole && std::ranges::equal(ahead->batches, batches, same_bytes);
}

Result<> FileLog::drop_ahead() {
  ahead_.reset();
  auto dropped = active().drop_ahead();
  if (!dropped) failed_ = dropped.error();
  return dropped;
}

Result<> FileLog::roll() {
  MR_CHECK(usable());
  return active().bytes() == 0 ? Result<>() : add_segment(end_);
}

Result<> FileLog::add_segment(Offset base) {
  MR_CHECK(drop_ahead());
  MR_CHECK(active().drop_preallocated());
  MR_TRY(auto segment, Segment::create(host_.environment.files(), source(base, {}),
                                       host_.environment.clock().wall()));
  active().complete(base);
  segments_.push_back(std::move(segment));
  folder_changed_ = true;
  as_closed_ = false;
  rolled_end_ = end_ = base;
  if (!std::exchange(flushing_rolled_, true)) {
    spawn(host_.shard, flush_rolled(), "flush of rolled segments of " + folder_);
  }
  return {};
}

// ---- reading ----

Task<> FileLog::load(SegmentPointer segment) {
  while (exchanging_) MR_CO_CHECK(co_await loaded_.wait());
  if (std::ranges::find(segments_, segment) == segments_.end()) co_return {};
  auto work = [&files = host_.environment.files(), modified = segment->modified(),
               from = source(segment->base(), next_of(segment_at(segment->base())))] {
    return Segment::load(files, from, modified);
  };
  ++loads_;
  CancelScope never_cancelled;
  auto loading = on_worker(host_.cold_reads.waited_for(), std::move(work)).within(never_cancelled);
  auto fresh = co_await std::move(loading);
  if (--loads_ == 0) loaded_.notify_all();
  const auto place = std::ranges::find(segments_, segment);
  if (place == segments_.end()) co_return {};  // trimmed or cut meanwhile
  if (!fresh) co_return fresh.error();
  put_in_place(*place, std::move(*fresh));
  co_return {};
}

void FileLog::put_in_place(SegmentPointer& place, SegmentPointer loaded) {
  loaded->take_over(*place);
  place = std::move(loaded);
  host_.open_files.used(place);
}

Task<Payload> FileLog::read(ReadRequest request) {
  if (closed_) co_return Error{Errc::closed, folder_ + ": the log is closed"};
  if (request.from < start_ || request.from > end_) {
    co_return out_of_range(folder_, "read from", request.from, start_, end_);
  }
  if (auto recent = recent_.read(request)) {
    recent_.wanted();
    co_return *std::move(recent);
  }
  Payload payload;
  auto from = request.from;
  while (!closed_ && from >= start_ && from < std::min(request.limit, end_)) {
    const auto segment = segments_[segment_at(from)];
    if (!segment->loaded()) {
      MR_CO_CHECK(co_await load(segment));
      continue;
    }
    host_.open_files.used(segment);
    const auto bytes_max = request.bytes_max - payload.size();
    const bool at_least_one = request.at_least_one && payload.empty();
    MR_CO_TRY(auto plan, segment->plan_read(from, request.limit, bytes_max, at_least_one));
    const bool cold = !in_memory(plan);
    if (cold && !payload.empty()) break;  // what there is does not wait for the disk
    const auto batch_bytes_max = at_least_one ? UINT64_MAX : bytes_max;
    const auto cold_bytes_max = host_.cold_reads.limits().answer_bytes_max;
    if (cold && bytes_max > cold_bytes_max) {
      MR_CO_TRY(plan, segment->plan_read(from, request.limit, cold_bytes_max, true));
    }
    auto found = cold ? Result<FoundRange>() : find_range(plan);
    if (cold) {
      auto finding = find_and_bring_in(plan, batch_bytes_max);
      found = co_await std::move(finding);
    }
    if (!found) co_return std::move(found).error();
    const ColdRange range{plan.file, found->position, found->bytes};
    cold_readers_.has_read(host_.cold_reads, range, plan.file_end, cold);
    payload.add(FileRange{plan.file, found->position, found->bytes});
    if (cold || !found->to_end || payload.size() >= request.bytes_max) break;
    if (payload.parts().size() >= ranges_per_read_max) break;
    const auto next = std::ranges::upper_bound(segments_, segment->base(), {},
                                               [](const auto& other) { return other->base(); });
    if (next == segments_.end()) {
      recent_.wanted();
      break;
    }
    from = (*next)->base();
  }
  co_return payload;
}

bool FileLog::in_memory(const ReadPlan& plan) const {
  const auto reach = plan.found_by + std::min(plan.bytes_max, plan.file_end) + scan_margin_bytes;
  const auto end = std::min(plan.file_end, reach);
  return plan.file->resident(plan.scan_from, end - plan.scan_from);
}

// A plan for less than was asked for has at least one batch, if that is no larger than what was.
Task<FoundRange> FileLog::find_and_bring_in(ReadPlan plan, std::uint64_t batch_bytes_max) {
  auto work = [plan = std::move(plan), batch_bytes_max,
               keep = host_.cold_reads.keeper()]() -> Result<FoundRange> {
    MR_TRY(const auto found, find_range(plan));
    if (found.bytes > batch_bytes_max) return FoundRange{};
    const bool there = plan.file->resident(found.position, found.bytes);
    MR_CHECK(bring_in(*plan.file, found.position, found.position + found.bytes));
    if (!there) keep({plan.file, found.position, found.bytes});
    return found;
  };
  co_return co_await on_worker(host_.cold_reads.waited_for(), std::move(work));
}

Task<BatchPosition> FileLog::batch_at(Timestamp time) {
  auto from = start_;
  while (!closed_ && from < end_) {
    const auto at = segment_at(from);
    const auto segment = segments_[at];
    const auto next = next_of(at);
    const auto newest = segment->max_timestamp();
    if (newest.ms < 0 || newest >= time) {
      if (!segment->loaded()) {
        MR_CO_CHECK(co_await load(segment));
        continue;
      }
      host_.open_files.used(segment);
      MR_CO_TRY(auto log, segment->file());
      auto work = [file = std::move(log), scan_from = segment->scan_for(time),
                   file_end = segment->bytes(), time, from]() -> Result<Offset> {
        EntryScanner scanner(*file, scan_from, file_end);
        while (true) {
          MR_TRY(const auto entry, scanner.next());
          if (!entry) return Offset{};
          if (entry->last >= from && entry->max_timestamp >= time) return entry->base;
        }
      };
      MR_CO_TRY(const auto found,
                co_await on_worker(host_.cold_reads.waited_for(), std::move(work)));
      if (found.value >= 0) co_return BatchPosition{std::max(found, start_)};
    }
    from = std::max(next, start_);
  }
  co_return BatchPosition{};
}

// ---- durability ----

Task<> FileLog::flush(Offset up_to) {
  while (recovery_point_ < std::min(up_to, end_)) {
    MR_CO_CHECK(usable());
    if (flushing_ || exchanging_) {
      MR_CO_CHECK(co_await flushed_.wait());
      continue;
    }
    MR_CO_CHECK(co_await flush_all());
  }
  co_return {};
}

// Brings everything that is written by now to the disk. One at a time: those who ask meanwhile
// share the next one.
Task<> FileLog::flush_all() {
  if (*give_up_) co_return Error{Errc::cancelled, folder_ + ": closed before all was on disk"};
  const auto target = end_;
  const auto cuts = cuts_;
  std::vector<SegmentPointer> dirty;
  std::vector<SyncPlan> plans;
  for (const auto& segment : segments_) {
    if (!segment->dirty()) continue;
    segment->set_dirty(false);
    dirty.push_back(segment);
    plans.push_back(segment->plan_sync());
  }
  flushing_ = true;
  auto result = co_await sync_all(plans);
  flushing_ = false;
  flushed_.notify_all();
  for (const auto& segment : dirty) {
    // One that was discarded meanwhile may have its index files back.
    const auto has_its_name = [&](const auto& other) { return other->base() == segment->base(); };
    if (!closed_ && std::ranges::none_of(segments_, has_its_name)) {
      (void)discard(std::span(&segment, 1));
    }
  }
  if (!result) {
    for (const auto& segment : dirty) segment->set_dirty(true);
    folder_changed_ = true;
    co_return result.error();
  }
  if (cuts != cuts_) co_return {};
  for (std::size_t at = 0; at < dirty.size(); ++at) dirty[at]->synced(plans[at]);
  recovery_point_ = std::max(recovery_point_, target);
  mark_->facts->durable_end = recovery_point_.value;
  co_return {};
}

// Indexes that cannot be written (the disk is full) are written another time, and the recovery
// point stays. Records that cannot be synced are another matter: the system may have dropped them,
// and only a restart, which checks, can tell.
Task<> FileLog::sync_all(std::vector<SyncPlan> plans) {
  auto lost = std::make_shared<std::atomic<bool>>(false);
  auto to_sync = std::make_shared<std::vector<SyncPlan>>(std::move(plans));
  auto& files = host_.environment.files();
  auto write = [&files, to_sync, lost, give_up = give_up_, folder = folder_,
                folder_changed = std::exchange(folder_changed_, false)](bool durably) -> Result<> {
    SyncProgress progress{*give_up};
    if (!durably) return write_out(files, folder, *to_sync, progress);
    auto done = carry_out(files, folder, *to_sync, progress);
    *lost = progress.records_failed;
    if (done && folder_changed) done = sync_topic_id(files, folder);
    if (done && folder_changed) done = files.sync_folder(folder);
    return done;
  };
  auto finish = [&files, to_sync, lost, give_up = give_up_, folder = folder_]() -> Result<> {
    SyncProgress progress{*give_up};
    auto done = sync_logs(files, folder, *to_sync, progress);
    *lost = progress.records_failed;
    return done;
  };
  auto syncing = host_.syncs.run({.write = std::move(write), .finish = std::move(finish)});
  auto result = co_await std::move(syncing);
  if (*lost) failed_ = result.error();
  co_return result;
}

Task<> FileLog::flush_rolled() {
  MR_CO_TRY(const auto pass, background_.enter());
  Result<> flushed;
  while (flushed && recovery_point_ < std::min(rolled_end_, end_)) {
    flushed = co_await flush(rolled_end_);
  }
  flushing_rolled_ = false;
  co_return flushed;
}

// What goes on in the background ends by itself once everything is on disk. Where it is not,
// because the disk failed or the caller no longer waits, it is told to end; what was not flushed is
// checked when the log is opened again.
Task<> FileLog::close() {
  if (closed_) co_return {};
  const auto* scope = co_await this_scope();
  if (scope && scope->cancelled()) *give_up_ = true;
  (void)lose_rewrite();
  (void)drop_ahead();
  auto flushed = co_await flush_to_close();
  *give_up_ = true;
  CancelScope never_cancelled;
  auto ending = background_.close().within(never_cancelled);
  MR_CO_CHECK(co_await std::move(ending));
  closed_ = true;
  recent_.clear();
  if (const auto claim = claim_.lock()) claim->log = nullptr;
  segments_.clear();
  mark_->closed_clean = flushed.has_value();
  mark_.reset();
  co_return std::move(flushed);
}

Task<> FileLog::flush_to_close() {
  MR_CO_CHECK(usable());
  if (!as_closed_) active().complete({});
  while (recovery_point_ < end_ || folder_changed_ ||
         std::ranges::any_of(segments_, [](const auto& segment) { return segment->dirty(); })) {
    MR_CO_CHECK(usable());
    if (flushing_ || exchanging_) {
      MR_CO_CHECK(co_await flushed_.wait());
    } else {
      MR_CO_CHECK(co_await flush_all());
    }
  }
  co_return {};
}

// ---- cutting ----

// Before a tail goes, the checkpoint must not claim it: what replaces it would count as checked.
Result<> FileLog::forget_durable(Offset from) {
  ++cuts_;
  as_closed_ = false;
  auto& claimed = mark_->facts->claimed_below;
  claimed = std::min(claimed.load(), from.value);
  if (recovery_point_ <= from) return {};
  recovery_point_ = from;
  mark_->facts->durable_end = from.value;
  return host_.lower_recovery_point(from);
}

// Renames first, oldest first, so that what a crash leaves behind is a log; the files go later, at
// once where the disk is full. Readers that hold one keep it.
Result<> FileLog::discard(std::span<const SegmentPointer> segments) {
  auto& files = host_.environment.files();
  Result<> done;
  std::vector<std::string> doomed;
  for (const auto& segment : segments) {
    for (const auto suffix : {log_suffix, offset_index_suffix, time_index_suffix, aborted_suffix}) {
      auto gone = segment->path(suffix) + std::string(deleted_mark);
      auto renamed = files.rename(segment->path(suffix), gone);
      if (renamed) doomed.push_back(std::move(gone));
      if (!renamed && suffix == log_suffix && done) done = std::move(renamed);
    }
  }
  folder_changed_ = true;
  const auto delay = host_.space.full() ? Duration::zero() : options_.file_delete_delay;
  host_.doomed.add(host_.shard, std::move(doomed), delay);
  return done;
}

// Durable when it returns, though that blocks the shard: an old segment that came back after a
// crash would continue the new tail as if it belonged there. It happens when a leader changes, no
// oftener.
Result<> FileLog::truncate_from(Offset first_removed) {
  MR_CHECK(usable());
  if (first_removed >= end_) return {};
  if (first_removed < start_) {
    return out_of_range(folder_, "truncation to", first_removed, start_, end_);
  }
  MR_CHECK(drop_ahead());
  const auto at = segment_at(first_removed);
  if (const auto& segment = segments_[at]; !segment->loaded()) {
    MR_TRY(auto loaded, Segment::load(host_.environment.files(),
                                      source(segment->base(), next_of(at)), segment->modified()));
    put_in_place(segments_[at], std::move(loaded));
  }
  MR_TRY(const auto cut, segments_[at]->plan_truncation(first_removed));
  MR_CHECK(lose_rewrite_from(first_removed));
  MR_CHECK(forget_durable(first_removed));
  recent_.clear();
  auto done = cut_behind(at, cut);
  end_ = first_removed;
  // A cut in a gap: the next start must find this end, not that of the last batch.
  if (done && active().end() < end_) {
    done = add_segment(end_);
    if (done) done = host_.environment.files().sync_folder(folder_);
  }
  if (!done) failed_ = done.error();
  return done;
}

Result<> FileLog::cut_behind(std::size_t at, std::uint64_t position) {
  if (at + 1 < segments_.size()) {
    (void)discard(std::span(segments_).subspan(at + 1));
    segments_.resize(at + 1);
    MR_CHECK(host_.environment.files().sync_folder(folder_));
  }
  return segments_[at]->truncate(position);
}

Result<> FileLog::trim_before(Offset first_kept) {
  MR_CHECK(usable());
  if (first_kept <= start_) return {};
  if (first_kept > end_) return out_of_range(folder_, "trim to", first_kept, start_, end_);
  start_ = first_kept;
  std::size_t whole = 0;
  while (whole + 1 < segments_.size() && next_of(whole) <= first_kept) ++whole;
  if (whole == 0) return {};
  MR_CHECK(lose_rewrite_before(segments_[whole]->base()));
  (void)discard(std::span(segments_).first(whole));
  segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(whole));
  return {};
}

Result<> FileLog::reset_to(Offset start) {
  MR_CHECK(usable());
  MR_CHECK(lose_rewrite());
  ahead_.reset();  // its file goes
  MR_CHECK(forget_durable(std::min(start, start_)));
  recent_.clear();
  auto& files = host_.environment.files();
  (void)discard(segments_);
  const auto synced = files.sync_folder(folder_);
  auto segment = Segment::create(files, source(start, {}), host_.environment.clock().wall());
  if (!synced || !segment) {
    failed_ = synced ? segment.error() : synced.error();
    return *failed_;
  }
  segments_.assign(1, *segment);
  start_ = end_ = start;
  return {};
}

// ---- the rest ----

std::vector<SegmentInfo> FileLog::segments() const {
  std::vector<SegmentInfo> infos;
  infos.reserve(segments_.size());
  for (std::size_t at = 0; at < segments_.size(); ++at) {
    const auto& segment = *segments_[at];
    infos.push_back({.base = segment.base(),
                     .next = next_of(at),
                     .bytes = segment.bytes(),
                     .max_timestamp = segment.max_timestamp(),
                     .modified = segment.modified(),
                     .active = at + 1 == segments_.size()});
  }
  return infos;
}

LogBounds FileLog::bounds() const noexcept {
  LogBounds bounds{.start = start_, .end = end_, .recovery_point = recovery_point_};
  for (const auto& segment : segments_) bounds.bytes += segment->bytes();
  return bounds;
}

Task<> FileLog::aux_turn() {
  while (aux_busy_) MR_CO_CHECK(co_await aux_free_.wait());
  co_return {};
}

Task<std::vector<AuxEntry>> FileLog::aux(AuxKind kind) {
  auto work = [&files = host_.environment.files(), folder = folder_, kind] {
    return read_aux(files, folder, kind);
  };
  co_return co_await on_worker(host_.environment.workers(), std::move(work));
}

Task<> FileLog::put_aux(AuxKind kind, Offset at, Buffer value) {
  MR_CO_CHECK(usable());
  MR_CO_CHECK(co_await aux_turn());
  aux_busy_ = true;
  auto& files = host_.environment.files();
  auto write = [&files, folder = folder_, kind, at, value](bool durably) {
    return durably ? write_aux(files, folder, kind, at, value)
                   : prepare_aux(files, folder, kind, at, value);
  };
  auto finish = [&files, folder = folder_, kind, at, value] {
    return name_aux(files, folder, kind, at, value);
  };
  auto syncing =
      host_.syncs.run({.write = std::move(write), .finish = std::move(finish), .names = true});
  auto result = co_await std::move(syncing);
  aux_busy_ = false;
  aux_free_.notify_all();
  co_return result;
}

void FileLog::reconfigure(const LogOptions& options) {
  const auto id = options_.topic_id;
  options_ = options;
  options_.topic_id = id;
}

}  // namespace millrace::filelog
