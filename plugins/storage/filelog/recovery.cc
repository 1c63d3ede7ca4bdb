#include "recovery.h"

#include <algorithm>
#include <limits>

#include <millrace/filelog/names.h>
#include <millrace/filelog/text.h>

namespace millrace::filelog {

namespace {

constexpr Offset everything{std::numeric_limits<std::int64_t>::max()};

constexpr std::string_view metadata_head = "version: 0\ntopic_id: ";
constexpr std::size_t topic_id_chars = 22;

// Of a file that was not on the disk when the power went there is nothing, zeros, or its beginning.
bool is_torn_metadata(std::string_view text) {
  if (text.find_first_not_of('\0') == std::string_view::npos) return true;
  return text.size() < metadata_head.size() + topic_id_chars &&
         (metadata_head.starts_with(text) || text.starts_with(metadata_head));
}

Offset base_of(const FileInfo& log_file) { return parse_offset_name(log_file.name)->offset; }

class Recovery {
 public:
  Recovery(FileSystem& files, const RecoveryRequest& request)
      : files_(files),
        request_(request),
        folder_(request.data_folder + "/" + to_string(request.partition)) {}

  Result<RecoveredLog> run() {
    MR_CHECK(find_or_make_folder());
    MR_CHECK(check_topic_id());
    if (log_.created) {
      MR_CHECK(begin_at(request_.log_start.value_or(Offset{0})));
    } else {
      MR_CHECK(finish_swaps());
      MR_CHECK(remove_leftovers());
      MR_CHECK(open_segments());
    }
    MR_CHECK(settle());
    if (folder_changed_) MR_CHECK(files_.sync_folder(folder_));
    return std::move(log_);
  }

 private:
  using Listing = std::vector<FileInfo>;

  Result<> find_or_make_folder();
  Result<> check_topic_id();
  Result<> write_topic_id(const Uuid& id);
  Result<> finish_swaps();
  Result<> finish_swap(Offset base, std::optional<Offset> end, const Listing& listing);
  Result<Offset> end_of_swap(Offset base);
  Result<> remove_leftovers();
  Result<Listing> list();
  Result<std::vector<FileInfo>> log_files();
  Result<> open_segments();
  Result<> check_segments(const std::vector<FileInfo>& logs, std::size_t first);
  Result<> cut(const std::vector<FileInfo>& logs, std::size_t at, std::uint64_t position,
               std::uint64_t file_bytes, std::string reason);
  Result<> refuse_unknown_damage(const std::string& log_path, const Damage& damage);
  Result<> settle();
  Result<> sync();
  Result<> begin_at(Offset start);
  Result<> remove_segment(Offset base);
  Result<> remove(const std::string& name);
  SegmentSource source(Offset base, Offset next) const {
    const auto& options = request_.options;
    return {folder_, base, next, options.index_interval_bytes,
            options.preallocate ? options.segment_bytes : 0};
  }
  std::string path(std::string_view name) const { return folder_ + "/" + std::string(name); }

  FileSystem& files_;
  const RecoveryRequest& request_;
  const std::string folder_;
  RecoveredLog log_;
  std::optional<Listing> listing_;  // none: something has changed since
  bool folder_changed_ = false;
};

Result<> Recovery::find_or_make_folder() {
  const auto found = files_.info(folder_);
  if (found) return {};
  if (found.error().code != Errc::not_found) return found.error();
  MR_CHECK(files_.make_folders(folder_));
  log_.created = true;
  return {};
}

Result<> Recovery::check_topic_id() {
  const auto& expected = request_.options.topic_id;
  if (expected.is_none()) return {};
  if (log_.created) return write_topic_id(expected);
  MR_TRY(const auto found, read_topic_id(files_, folder_));
  if (found == expected) return {};
  if (!found.is_none()) {
    return Error{Errc::conflict,
                 say(folder_, ": holds topic id ", to_string(found), ", ", to_string(expected),
                     " expected; another topic had this name, move its folder away")};
  }
  return write_topic_id(expected);
}

// Of a new log nothing is synced: until its first flush there is nothing that a crash could take.
Result<> Recovery::write_topic_id(const Uuid& id) {
  const auto text = say(metadata_head, to_string(id), "\n");
  const auto content = as_bytes(text);
  if (!log_.created) return replace_file(files_, path(metadata_file), content);
  MR_TRY(const auto file, files_.open(path(metadata_file), OpenMode::create));
  return file->write_at(0, std::span(&content, 1));
}

// A compaction that had written everything: `.swap` files replace the segments that they were made
// from. One that was still writing has left `.cleaned` files; its swaps are not complete. Ours has
// one log, whose range a marker ends; of Kafka's the records tell.
Result<> Recovery::finish_swaps() {
  MR_TRY(const auto listing, list());
  Offset unfinished_from = everything;
  std::optional<Offset> end;
  for (const auto& file : listing) {
    const auto name = parse_offset_name(file.name);
    if (!name) continue;
    if (name->suffix.ends_with(cleaned_mark)) {
      unfinished_from = std::min(unfinished_from, name->offset);
    }
    if (name->suffix == std::string(end_suffix) + std::string(swap_mark)) end = name->offset;
  }
  for (const auto& file : listing) {
    const auto name = parse_offset_name(file.name);
    if (!name || name->suffix != std::string(log_suffix) + std::string(swap_mark)) continue;
    if (end || name->offset < unfinished_from) {
      MR_CHECK(finish_swap(name->offset, end, listing));
    }
  }
  // The marker, whose offset is beyond, after what it ends.
  for (const auto& file : listing) {
    const auto name = parse_offset_name(file.name);
    if (name && name->suffix.ends_with(swap_mark)) MR_CHECK(remove(file.name));
  }
  return {};
}

// In an order in which a crash within it leaves what is finished the next time.
Result<> Recovery::finish_swap(Offset base, std::optional<Offset> end, const Listing& listing) {
  listing_.reset();
  if (!end) {
    MR_TRY(end, end_of_swap(base));
  }
  for (const auto& file : listing) {
    const auto name = parse_offset_name(file.name);
    if (!name || name->suffix != log_suffix) continue;
    if (name->offset > base && name->offset < *end) MR_CHECK(remove_segment(name->offset));
  }
  MR_CHECK(remove(offset_name(base, offset_index_suffix)));
  MR_CHECK(remove(offset_name(base, time_index_suffix)));
  for (const auto suffix : {aborted_suffix, log_suffix}) {
    const auto name = path(offset_name(base, suffix));
    auto renamed = files_.rename(name + std::string(swap_mark), name);
    const bool needed = suffix == log_suffix;
    if (!renamed && (needed || renamed.error().code != Errc::not_found)) return renamed;
  }
  return {};
}

Result<Offset> Recovery::end_of_swap(Offset base) {
  const auto swap = path(offset_name(base, log_suffix)) + std::string(swap_mark);
  MR_TRY(const auto file, files_.open(swap, OpenMode::read));
  MR_TRY(const auto bytes, file->size());
  EntryScanner scanner(*file, 0, bytes);
  auto end = base;
  while (true) {
    MR_TRY(const auto entry, scanner.next());
    if (!entry) return end;
    end = entry->last + 1;
  }
}

// Once for all steps, where nothing is left of a crash: of many partitions it is what costs most.
Result<Recovery::Listing> Recovery::list() {
  if (!listing_) {
    MR_TRY(listing_, files_.list(folder_));
  }
  return *listing_;
}

Result<> Recovery::remove_leftovers() {
  MR_TRY(const auto listing, list());
  std::vector<Offset> bases;
  for (const auto& file : listing) {
    const auto name = parse_offset_name(file.name);
    if (name && name->suffix == log_suffix) bases.push_back(name->offset);
  }
  for (const auto& file : listing) {
    const auto name = parse_offset_name(file.name);
    if (!name) continue;
    const bool marked = name->suffix.ends_with(deleted_mark) ||
                        name->suffix.ends_with(cleaned_mark) ||
                        name->suffix.ends_with(temporary_mark);
    const bool index = name->suffix == offset_index_suffix || name->suffix == time_index_suffix ||
                       name->suffix == aborted_suffix;
    const bool orphan = index && !std::ranges::binary_search(bases, name->offset);
    if (marked || orphan) MR_CHECK(remove(file.name));
  }
  return {};
}

Result<std::vector<FileInfo>> Recovery::log_files() {
  MR_TRY(auto listing, list());
  std::erase_if(listing, [](const FileInfo& file) {
    const auto name = parse_offset_name(file.name);
    return file.is_folder || !name || name->suffix != log_suffix;
  });
  return listing;
}

Result<> Recovery::open_segments() {
  MR_TRY(const auto logs, log_files());
  if (logs.empty()) return begin_at(request_.log_start.value_or(Offset{0}));

  const auto sound_below =
      request_.clean ? everything : request_.recovery_point.value_or(base_of(logs[0]));
  // The first segment to check: the one that ends at the recovery point or holds it. Of those
  // before it the indexes are on disk too.
  std::size_t first = logs.size() - 1;
  while (first > 0 && base_of(logs[first]) >= sound_below) --first;
  for (std::size_t at = 0; at < first; ++at) {
    MR_TRY(auto segment,
           Segment::glance(files_, source(base_of(logs[at]), base_of(logs[at + 1])), logs[at]));
    log_.segments.push_back(std::move(segment));
  }
  log_.checked_from = std::max(base_of(logs[first]), sound_below);
  return check_segments(logs, first);
}

Result<> Recovery::check_segments(const std::vector<FileInfo>& logs, std::size_t first) {
  const auto sound_below =
      request_.clean ? everything : request_.recovery_point.value_or(Offset{0});
  for (auto at = first; at < logs.size(); ++at) {
    const bool last = at + 1 == logs.size();
    const auto next = last ? Offset{} : base_of(logs[at + 1]);
    std::optional<Damage> damage;
    MR_TRY(auto segment, Segment::check(files_, source(base_of(logs[at]), next), logs[at].modified,
                                        sound_below, damage));
    segment->set_dirty(!request_.clean);
    log_.segments.push_back(segment);
    if (damage && damage->zeros && request_.options.preallocate) {
      MR_TRY(const auto log, segment->file());
      MR_CHECK(log->truncate(damage->position));
      damage.reset();
    }
    if (damage) {
      if (!damage->torn) MR_CHECK(refuse_unknown_damage(segment->path(log_suffix), *damage));
      return cut(logs, at, damage->position, logs[at].size, damage->what);
    }
    if (last) break;
    // Below the recovery point it is compaction's.
    if (request_.recovery_point && segment->end() < next && next > *request_.recovery_point) {
      return cut(logs, at, segment->bytes(), logs[at].size,
                 say(segment->path(log_suffix), ": ends at offset ", segment->end().value,
                     ", the next segment starts at ", next.value));
    }
    segment->complete(next);
    segment->let_go();  // there may be very many of them
  }
  return {};
}

// Everything from `position` of segment `at` on goes: what stands behind a tear was never promised.
Result<> Recovery::cut(const std::vector<FileInfo>& logs, std::size_t at, std::uint64_t position,
                       std::uint64_t file_bytes, std::string reason) {
  log_.bytes_cut = file_bytes - position;
  for (auto later = logs.size() - 1; later > at; --later) {
    log_.bytes_cut += logs[later].size;
    MR_CHECK(remove_segment(base_of(logs[later])));
  }
  const auto& segment = log_.segments.back();
  MR_TRY(const auto log, segment->file());
  MR_CHECK(log->truncate(position));
  segment->set_dirty(true);
  log_.cut_reason = say(reason, "; cut to byte ", position, ", ", log_.bytes_cut, " bytes removed");
  if (logs.size() - 1 > at) {
    log_.cut_reason += say(", with ", logs.size() - 1 - at, " later segments");
  }
  return {};
}

// Behind a recovery point damage is the trace of a crash. Where no recovery point is known it may
// be old, and what follows it may be all there is.
Result<> Recovery::refuse_unknown_damage(const std::string& log_path, const Damage& damage) {
  if (request_.recovery_point || request_.clean) return {};
  return Error{
      Errc::corrupt,
      say(damage.what, "; no recovery point is known for ", to_string(request_.partition),
          ", so this is not taken for a torn write and nothing is removed. Restore the file ",
          log_path, ", or cut it to ", damage.position, " bytes")};
}

Result<> Recovery::settle() {
  log_.end = log_.segments.back()->end();
  log_.start = log_.segments.front()->base();
  if (request_.log_start) log_.start = std::max(log_.start, *request_.log_start);
  if (log_.start > log_.end) {
    // Records below the start were deleted; those between have not reached the disk.
    log_.cut_reason += say(log_.cut_reason.empty() ? "" : "; ", "the log ends at ", log_.end.value,
                           ", below its start ", log_.start.value, " in the checkpoint: emptied");
    for (const auto& segment : log_.segments) {
      log_.bytes_cut += segment->bytes();
      MR_CHECK(remove_segment(segment->base()));
    }
    log_.segments.clear();
    MR_CHECK(begin_at(log_.start));
    log_.end = log_.start;
  }
  log_.checked_from = std::min(log_.checked_from, log_.end);
  const bool indexed = log_.segments.back()->indexed();
  const bool never_written = log_.end == Offset{0} && !indexed;
  log_.as_closed = log_.bytes_cut == 0 && (never_written || (request_.clean && indexed));
  log_.durable = log_.end;
  if (never_written) log_.segments.back()->set_dirty(false);
  if (std::ranges::none_of(log_.segments, &Segment::dirty)) return {};
  // What was read may still be in the page cache alone.
  if (request_.recovery_point && log_.bytes_cut == 0) {
    log_.durable = std::max(log_.start, std::min(*request_.recovery_point, log_.end));
    return {};
  }
  return sync();
}

Result<> Recovery::sync() {
  std::vector<std::shared_ptr<Segment>> dirty;
  std::vector<SyncPlan> plans;
  for (const auto& segment : log_.segments) {
    if (!segment->dirty()) continue;
    dirty.push_back(segment);
    plans.push_back(segment->plan_sync());
  }
  const std::atomic<bool> never = false;
  SyncProgress progress{never};
  MR_CHECK(carry_out(files_, folder_, plans, progress));
  for (std::size_t at = 0; at < dirty.size(); ++at) {
    dirty[at]->synced(plans[at]);
    dirty[at]->set_dirty(false);
  }
  return {};
}

// One that begins at 0 is the same without its file. Of any other the name says where it begins.
Result<> Recovery::begin_at(Offset start) {
  MR_TRY(auto segment, Segment::create(files_, source(start, {}), request_.now));
  if (start > Offset{0}) folder_changed_ = true;
  log_.segments.push_back(std::move(segment));
  log_.checked_from = start;
  return {};
}

Result<> Recovery::remove(const std::string& name) {
  folder_changed_ = true;
  listing_.reset();
  auto removed = files_.remove(path(name));
  if (!removed && removed.error().code == Errc::not_found) return {};
  return removed;
}

Result<> Recovery::remove_segment(Offset base) {
  for (const auto suffix : {offset_index_suffix, time_index_suffix, aborted_suffix, log_suffix}) {
    MR_CHECK(remove(offset_name(base, suffix)));
  }
  return {};
}

}  // namespace

Result<RecoveredLog> recover(FileSystem& files, const RecoveryRequest& request) {
  return Recovery(files, request).run();
}

Result<> sync_topic_id(FileSystem& files, const std::string& folder) {
  const auto file = files.open(folder + "/" + std::string(metadata_file), OpenMode::write);
  if (file) return (*file)->sync();
  return file.error().code == Errc::not_found ? Result<>() : file.error();
}

Result<Uuid> read_topic_id(FileSystem& files, const std::string& folder) {
  constexpr std::string_view field = "topic_id:";
  const auto path = folder + "/" + std::string(metadata_file);
  const auto content = read_file(files, path);
  if (!content)
    return content.error().code == Errc::not_found ? Result<Uuid>(Uuid{}) : content.error();
  const auto text = content->text();
  if (is_torn_metadata(text)) return Uuid{};
  auto at = text.find(field);
  if (at != std::string_view::npos) {
    at = text.find_first_not_of(' ', at + field.size());
    if (at != std::string_view::npos) {
      const auto end = text.find_first_of(" \r\n", at);
      if (const auto id = parse_uuid(text.substr(at, end - at))) return *id;
    }
  }
  return Error{Errc::corrupt, path + ": no line 'topic_id: ID' with 22 characters of base64url"};
}

}  // namespace millrace::filelog
