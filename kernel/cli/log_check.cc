#include "kernel/cli/log_check.h"

#include <algorithm>
#include <tuple>

#include <millrace/filelog/names.h>
#include <millrace/filelog/text.h>

#include "kernel/cli/log_check_beside.h"
#include "kernel/cli/log_check_index.h"

namespace millrace::kernel::cli {

using filelog::log_suffix;
using filelog::offset_index_suffix;
using filelog::say;
using filelog::time_index_suffix;

namespace {

class PartitionCheck {
 public:
  PartitionCheck(FileSystem& files, const DataDirectory& directory, const PartitionFolder& folder,
                 const ReadProgress& progress)
      : files_(files), directory_(directory), folder_(folder), progress_(progress) {
    report_.name = folder.name;
    report_.path = folder.path;
    report_.segments = folder.segments.size();
    if (!folder.segments.empty()) report_.start = report_.end = folder.segments.front().base;
  }

  Result<PartitionReport> run() {
    for (std::size_t at = 0; at < folder_.segments.size(); ++at) {
      MR_CHECK(check_segment(at));
      check_gap(at);
    }
    tell_gaps();
    check_end();
    if (folder_.segments.empty()) note("there is no segment: the log is empty");
    for (const auto& stranger : folder_.strangers) {
      report_.findings.push_back(
          {.kind = FindingKind::beside,
           .file = folder_.path_of(stranger, log_suffix),
           .bytes = stranger.bytes,
           .what = "no batch in it is sound, and the segment before has the offsets that its name "
                   "claims: it is no part of the log, and no broker serves the partition with it"});
    }
    MR_CHECK(check_beside(files_, {directory_, folder_, epochs_}, report_));
    return std::move(report_);
  }

 private:
  bool in_use() const noexcept { return !directory_.holder.empty(); }
  bool is_last(std::size_t at) const noexcept { return at + 1 == folder_.segments.size(); }
  void note(std::string what) {
    report_.findings.push_back(
        {.kind = FindingKind::note, .file = folder_.path, .what = std::move(what)});
  }

  Result<> check_segment(std::size_t at);
  void see(const SoundBatch& batch);
  void see(std::size_t at, BadRegion region);
  void add_hole_of(std::size_t at, const DisplacedBatch& batch);
  void check_gap(std::size_t at);
  std::string_view excuse_of(const BadRegion& gap) const;
  void tell_gaps();
  void check_end();
  void add_region(std::size_t at, BadRegion region);

  FileSystem& files_;
  const DataDirectory& directory_;
  const PartitionFolder& folder_;
  const ReadProgress& progress_;
  PartitionReport report_;
  std::vector<EpochStart> epochs_;
  std::int64_t holes_ = 0;  // as compaction leaves them, within segments
  std::vector<SegmentRegion> gaps_;
};

Result<> PartitionCheck::check_segment(std::size_t at) {
  const auto& segment = folder_.segments[at];
  const auto path = folder_.path_of(segment, log_suffix);
  // Before the log's size is known: a row is written behind its batch.
  MR_TRY(auto index, IndexCheck::begin(files_, folder_.path_of(segment, offset_index_suffix),
                                       folder_.path_of(segment, time_index_suffix), segment.base));
  const auto opened = files_.open(path, OpenMode::read);
  if (!opened && in_use() && opened.error().code == Errc::not_found) {
    note(path + ": was deleted meanwhile");
    return {};
  }
  if (!opened) return opened.error();
  const auto& file = **opened;
  MR_TRY(const auto bytes, file.size());
  report_.bytes += bytes;
  report_.end = segment.base;
  SegmentWalker walker(file, bytes, segment.base, segment.next);
  std::uint64_t told = 0;
  while (true) {
    MR_TRY(auto item, walker.next());
    if (!item) break;
    std::uint64_t end = 0;
    if (const auto* batch = std::get_if<SoundBatch>(&*item)) {
      index.see(*batch);
      see(*batch);
      end = batch->entry.end();
    } else {
      auto& region = std::get<BadRegion>(*item);
      index.see(region);
      end = region.end;
      see(at, std::move(region));
    }
    if (progress_) progress_(end - told);
    told = end;
  }
  for (auto& wrong : std::move(index).finish(bytes)) {
    report_.findings.push_back({.kind = FindingKind::index,
                                .file = std::move(wrong.path),
                                .position = wrong.position,
                                .what = std::move(wrong.what)});
  }
  return {};
}

void PartitionCheck::see(const SoundBatch& batch) {
  ++report_.batches;
  const auto& entry = batch.entry;
  // Of old formats nobody knows without opening it where a message begins.
  if (entry.magic < 2 || entry.base > report_.end) ++holes_;
  if (batch.header && batch.header->partition_leader_epoch.value >= 0) {
    const auto epoch = batch.header->partition_leader_epoch;
    if (epochs_.empty() || epochs_.back().epoch != epoch) epochs_.push_back({epoch, entry.base});
  }
  report_.end = entry.last + 1;
}

void PartitionCheck::see(std::size_t at, BadRegion region) {
  const bool at_end = region.to_file_end && is_last(at);
  if (at_end && in_use()) {
    report_.being_written = true;
    note(say(folder_.path_of(folder_.segments[at], log_suffix), ": ", region.bytes(),
             " bytes behind offset ", report_.end.value, " are being written"));
    return;
  }
  const auto recovery_point =
      directory_.checkpointed(CheckpointKind::recovery_point, folder_.partition);
  if (!at_end) region.torn = false;
  if (at_end && recovery_point && region.from >= *recovery_point) region.torn = true;
  if (region.to_file_end && !is_last(at)) region.to = folder_.segments[at].next + -1;
  if (at_end && recovery_point) region.to = std::max(region.to, *recovery_point + -1);
  for (const auto& batch : region.displaced) add_hole_of(at, batch);
  // What it stands for is no hole that compaction has left.
  if (!region.to_file_end) report_.end = std::max(report_.end, region.to + 1);
  add_region(at, std::move(region));
}

// Readers look for it where its offsets would stand, and find nothing.
void PartitionCheck::add_hole_of(std::size_t at, const DisplacedBatch& batch) {
  if (batch.fills) --holes_;
  add_region(at, {.position = batch.hole,
                  .end = batch.hole,
                  .from = batch.from,
                  .to = batch.to,
                  .what = say("the batch of these offsets stands at byte ", batch.position,
                              ", behind newer ones, where nobody looks for it")});
}

void PartitionCheck::add_region(std::size_t at, BadRegion region) {
  const bool lost = region.to >= region.from;
  report_.findings.push_back({.kind = region.torn ? FindingKind::torn : FindingKind::damaged,
                              .file = folder_.path_of(folder_.segments[at], log_suffix),
                              .position = region.position,
                              .bytes = region.bytes(),
                              .from = lost || region.to.value < 0 ? region.from : Offset{},
                              .to = lost ? region.to : Offset{},
                              .what = region.what});
  // The offsets up to the next segment are told of.
  if (region.to_file_end && !is_last(at)) {
    report_.end = std::max(report_.end, folder_.segments[at].next);
  }
  report_.regions.push_back({at, std::move(region)});
}

void PartitionCheck::check_gap(std::size_t at) {
  const auto& segment = folder_.segments[at];
  if (is_last(at) || report_.end >= segment.next) return;
  BadRegion gap{.from = report_.end, .to = segment.next + -1, .to_file_end = true};
  const auto file = files_.info(folder_.path_of(segment, log_suffix));
  gap.position = gap.end = file ? file->size : segment.bytes;
  gap.what = say("the segment ends in front of offset ", gap.from.value,
                 ", the next one begins with ", segment.next.value);
  gaps_.push_back({at, std::move(gap)});
}

// Compaction leaves gaps, below where it says it was, and mostly holes within segments too.
std::string_view PartitionCheck::excuse_of(const BadRegion& gap) const {
  const auto cleaned = directory_.checkpointed(CheckpointKind::cleaner, folder_.partition);
  if (holes_ > 0 || (cleaned && gap.to < *cleaned)) {
    return "; the log looks compacted, which leaves such gaps";
  }
  std::optional<Offset> from;
  for (const auto& file : folder_.files) {
    const auto name = filelog::parse_offset_name(file.name);
    if (!name || !name->suffix.ends_with(filelog::swap_mark)) continue;
    if (name->suffix.starts_with(filelog::end_suffix) && from && *from <= gap.from &&
        gap.to < name->offset) {
      return "; a compaction has what belongs there, and a broker finishes it when it starts";
    }
    if (name->suffix.substr(0, name->suffix.size() - filelog::swap_mark.size()) == log_suffix) {
      from = name->offset;
    }
  }
  return {};
}

void PartitionCheck::tell_gaps() {
  for (auto& gap : gaps_) {
    const auto excuse = excuse_of(gap.region);
    if (excuse.empty()) {
      add_region(gap.segment, std::move(gap.region));
      continue;
    }
    note(say(folder_.path_of(folder_.segments[gap.segment], log_suffix), ": ", gap.region.what,
             excuse));
  }
  const auto order = [](const SegmentRegion& region) {
    return std::tuple(region.segment, region.region.position, region.region.from);
  };
  std::ranges::sort(report_.regions, {}, order);
}

// What is said of the log elsewhere.
void PartitionCheck::check_end() {
  if (in_use() || folder_.segments.empty()) return;
  const auto recovery_point =
      directory_.checkpointed(CheckpointKind::recovery_point, folder_.partition);
  const bool told = !report_.regions.empty() && report_.regions.back().region.to_file_end &&
                    is_last(report_.regions.back().segment);
  if (recovery_point && *recovery_point > report_.end && !told) {
    add_region(folder_.segments.size() - 1,
               {.position = folder_.segments.back().bytes,
                .end = folder_.segments.back().bytes,
                .from = report_.end,
                .to = *recovery_point + -1,
                .to_file_end = true,
                .what = say("the log ends in front of offset ", report_.end.value, "; up to ",
                            recovery_point->value, " it had reached the disk")});
  }
  const auto start = directory_.checkpointed(CheckpointKind::log_start, folder_.partition);
  if (start && *start > report_.end) {
    note(say("the log starts at offset ", start->value, ", behind its end ", report_.end.value,
             ": a broker empties it"));
  }
  if (start) report_.start = std::max(report_.start, *start);
}

}  // namespace

std::string_view name_of(FindingKind kind) noexcept {
  switch (kind) {
    case FindingKind::torn: return "torn";
    case FindingKind::damaged: return "damaged";
    case FindingKind::index: return "index";
    case FindingKind::beside: return "beside";
    case FindingKind::note: break;
  }
  return "note";
}

FindingKind PartitionReport::worst() const noexcept {
  const auto rank = [](FindingKind kind) {
    // A torn tail is what a start mends by itself.
    switch (kind) {
      case FindingKind::damaged: return 4;
      case FindingKind::torn: return 3;
      case FindingKind::index: return 2;
      case FindingKind::beside: return 1;
      case FindingKind::note: break;
    }
    return 0;
  };
  auto worst = FindingKind::note;
  for (const auto& finding : findings) {
    if (rank(finding.kind) > rank(worst)) worst = finding.kind;
  }
  return worst;
}

Result<PartitionReport> check_partition(FileSystem& files, const DataDirectory& directory,
                                        const PartitionFolder& folder,
                                        const ReadProgress& progress) {
  return PartitionCheck(files, directory, folder, progress).run();
}

}  // namespace millrace::kernel::cli
