#include "kernel/cli/log_repair.h"

#include <algorithm>
#include <limits>
#include <map>

#include <millrace/batch.h>
#include <millrace/filelog/checkpoint_text.h>
#include <millrace/filelog/names.h>
#include <millrace/filelog/text.h>

#include "kernel/cli/file_pieces.h"
#include "kernel/cli/log_check_beside.h"

namespace millrace::kernel::cli {

using filelog::log_suffix;
using filelog::say;

namespace {

bool ends_with_compaction(const PartitionFolder& folder) {
  return std::ranges::any_of(folder.files, [](const FileInfo& file) {
    return file.name.ends_with(filelog::swap_mark) || file.name.ends_with(filelog::cleaned_mark);
  });
}

std::size_t segment_of(const PartitionFolder& folder, const std::string& path) {
  const auto name = filelog::parse_offset_name(std::string_view(path).substr(path.rfind('/') + 1));
  const auto found = std::ranges::find(folder.segments, name->offset, &SegmentFile::base);
  return static_cast<std::size_t>(found - folder.segments.begin());
}

class Planner {
 public:
  Planner(const PartitionFolder& folder, const PartitionReport& report, bool skip_damaged)
      : folder_(folder), report_(report), skip_damaged_(skip_damaged) {}

  RepairPlan run() && {
    if (ends_with_compaction(folder_)) {
      plan_.left.push_back(folder_.path +
                           ": has files of an unfinished compaction; start and stop a broker, "
                           "which finishes it, and look again");
      return std::move(plan_);
    }
    for (const auto& found : report_.regions) plan_region(found);
    for (const auto& finding : report_.findings) plan_finding(finding);
    return std::move(plan_);
  }

 private:
  void plan_region(const SegmentRegion& found) {
    const auto& region = found.region;
    const auto file = folder_.path_of(folder_.segments[found.segment], log_suffix);
    if (!region.torn && !skip_damaged_) {
      plan_.left.push_back(
          say(file, ":", region.position, " (", region.bytes(), " bytes): ", region.what,
              "; where another replica is in sync, move this folder away and let the broker fetch "
              "the partition; or --skip-damaged moves the bytes into a file and keeps the rest"));
      return;
    }
    // An empty batch says how many offsets it stands for by 32 bits, and so does an index.
    constexpr std::int64_t offsets_max = std::numeric_limits<std::int32_t>::max();
    if (region.to >= region.from &&
        region.to - folder_.segments[found.segment].base > offsets_max) {
      plan_.left.push_back(say(file, ":", region.position, ": offsets ", region.from.value, " to ",
                               region.to.value,
                               " are missing, more than a log can skip; if the "
                               "segment behind is none of this log, move it away"));
      return;
    }
    const bool at_end = region.to_file_end && found.segment + 1 == folder_.segments.size();
    RepairStep step{.action = at_end ? RepairAction::cut : RepairAction::move_aside,
                    .file = file,
                    .segment = found.segment,
                    .region = region,
                    .kept_in = {}};
    if (region.bytes() > 0 && !region.zeros) {
      step.kept_in = folder_.path + "/" + filelog::offset_name(region.from, damaged_mark);
    }
    plan_.steps.push_back(std::move(step));
    plan_indexes(found.segment);
  }

  void plan_finding(const Finding& finding) {
    if (finding.kind == FindingKind::index) plan_indexes(segment_of(folder_, finding.file));
    if (finding.kind != FindingKind::beside) return;
    if (finding.file.ends_with(filelog::metadata_file)) {
      plan_.left.push_back(say(finding.file, ": ", finding.what,
                               "; 'millrace topic describe TOPIC' of the running cluster shows the "
                               "id that belongs there"));
      return;
    }
    plan_.steps.push_back({.action = RepairAction::set_aside,
                           .file = finding.file,
                           .segment = 0,
                           .region = {},
                           .kept_in = finding.file + std::string(damaged_mark)});
  }

  void plan_indexes(std::size_t segment) {
    const auto known = [segment](const RepairStep& step) {
      return step.action == RepairAction::remove_indexes && step.segment == segment;
    };
    if (std::ranges::any_of(plan_.steps, known)) return;
    plan_.steps.push_back(
        {.action = RepairAction::remove_indexes,
         .file = folder_.path_of(folder_.segments[segment], filelog::offset_index_suffix),
         .segment = segment,
         .region = {},
         .kept_in = {}});
  }

  const PartitionFolder& folder_;
  const PartitionReport& report_;
  const bool skip_damaged_;
  RepairPlan plan_;
};

// What a compaction leaves of a batch whose records are all gone, so that its offsets are not
// given again.
std::vector<std::byte> placeholder(const BadRegion& region) {
  std::vector<std::byte> bytes(batch_header_bytes);
  BatchHeader header{
      .base_offset = region.from,
      .batch_length = static_cast<std::int32_t>(batch_header_bytes - batch_prefix_bytes),
      .partition_leader_epoch = region.epoch,
      .last_offset_delta = static_cast<std::int32_t>(region.to - region.from)};
  write_batch_header(header, bytes);
  header.crc = batch_crc(bytes, {});
  write_batch_header(header, bytes);
  return bytes;
}

// What an earlier repair has kept stays.
Result<> set_aside(FileSystem& files, const RepairStep& step) {
  auto path = step.kept_in;
  for (int number = 2; files.info(path); ++number) path = say(step.kept_in, "-", number);
  return files.rename(step.file, path);
}

class Executor {
 public:
  Executor(FileSystem& files, const DataDirectory& directory, const PartitionFolder& folder)
      : files_(files), directory_(directory), folder_(folder) {}

  Result<> run(const RepairPlan& plan) {
    std::map<std::size_t, std::vector<const RepairStep*>> regions;
    for (const auto& step : plan.steps) {
      if (!step.kept_in.empty() && step.is_of_log()) MR_CHECK(keep(step));
    }
    MR_CHECK(files_.sync_folder(folder_.path));
    // First what stands where others have their place.
    for (const auto& step : plan.steps) {
      if (step.action == RepairAction::set_aside) MR_CHECK(set_aside(files_, step));
    }
    for (const auto& step : plan.steps) {
      if (step.action == RepairAction::remove_indexes) MR_CHECK(remove_indexes(step));
      if (step.is_of_log()) regions[step.segment].push_back(&step);
    }
    // An index must not outlive what it leads to.
    MR_CHECK(files_.sync_folder(folder_.path));
    for (const auto& [segment, steps] : regions) {
      MR_CHECK(lower_recovery_point(*steps.back()));
      const bool one_at_end = steps.size() == 1 && steps.front()->region.to_file_end;
      MR_CHECK(one_at_end ? end_segment(*steps.front()) : rewrite_segment(steps));
    }
    return files_.sync_folder(folder_.path);
  }

 private:
  Result<> keep(const RepairStep& step) {
    MR_TRY(const auto log, files_.open(step.file, OpenMode::read));
    const FileRange range{*log, step.region.position, step.region.end};
    auto path = step.kept_in;
    for (int number = 2;; ++number) {
      MR_TRY(const auto same, holds_just(files_, path, range));
      if (same == Holds::same) return {};  // of a repair that was interrupted
      if (same == Holds::no_file) break;
      path = say(step.kept_in, "-", number);
    }
    return write_pieces(files_, path, {{range, {}}});
  }

  Result<> remove_indexes(const RepairStep& step) {
    const auto& segment = folder_.segments[step.segment];
    for (const auto suffix : {filelog::offset_index_suffix, filelog::time_index_suffix}) {
      const auto removed = files_.remove(folder_.path_of(segment, suffix));
      if (!removed && removed.error().code != Errc::not_found) return removed;
    }
    return {};
  }

  // As a broker that truncates: the checkpoint never claims what the log does not have.
  Result<> lower_recovery_point(const RepairStep& step) {
    if (step.action != RepairAction::cut || step.has_placeholder()) return {};
    const auto kind = CheckpointKind::recovery_point;
    const auto point = directory_.checkpointed(kind, folder_.partition);
    if (!point || *point <= step.region.from) return {};
    auto points = directory_.checkpoints[static_cast<std::size_t>(kind)];
    points[*folder_.partition] = step.region.from;
    const auto text = filelog::write_checkpoint(points);
    return replace_file(files_, directory_.path + "/" + std::string(filelog::checkpoint_file(kind)),
                        as_bytes(text));
  }

  Result<> end_segment(const RepairStep& step) {
    MR_TRY(const auto log, files_.open(step.file, OpenMode::write));
    auto end = step.region.position;
    // First: killed before what is behind it is cut, the next repair cuts it, and no offset is
    // given again.
    if (step.has_placeholder()) {
      const auto batch = placeholder(step.region);
      const Bytes bytes(batch);
      MR_CHECK(log->write_at(end, std::span(&bytes, 1)));
      end += bytes.size();
    }
    MR_CHECK(log->truncate(end));
    return log->sync();
  }

  Result<> rewrite_segment(const std::vector<const RepairStep*>& steps) {
    const auto& path = steps.front()->file;
    MR_TRY(const auto log, files_.open(path, OpenMode::read));
    MR_TRY(const auto bytes, log->size());
    std::vector<Piece> pieces;
    std::uint64_t position = 0;
    for (const auto* step : steps) {
      pieces.push_back({FileRange{*log, position, step->region.position}, {}});
      if (step->has_placeholder()) pieces.push_back({std::nullopt, placeholder(step->region)});
      position = step->region.end;
    }
    pieces.push_back({FileRange{*log, position, bytes}, {}});
    return write_pieces(files_, path, pieces);
  }

  FileSystem& files_;
  const DataDirectory& directory_;
  const PartitionFolder& folder_;
};

}  // namespace

std::string_view name_of(RepairAction action) noexcept {
  switch (action) {
    case RepairAction::cut: return "cut";
    case RepairAction::move_aside: return "move_aside";
    case RepairAction::remove_indexes: return "remove_indexes";
    case RepairAction::set_aside: break;
  }
  return "set_aside";
}

RepairPlan plan_repair(const DataDirectory& directory) {
  RepairPlan plan;
  for (const auto& file : directory.unreadable) {
    plan.steps.push_back({.action = RepairAction::set_aside,
                          .file = file.path,
                          .segment = 0,
                          .region = {},
                          .kept_in = file.path + std::string(damaged_mark)});
  }
  return plan;
}

Result<> carry_out(FileSystem& files, const DataDirectory& directory, const RepairPlan& plan) {
  if (plan.steps.empty()) return {};
  for (const auto& step : plan.steps) MR_CHECK(set_aside(files, step));
  return files.sync_folder(directory.path);
}

RepairPlan plan_repair(const PartitionFolder& folder, const PartitionReport& report,
                       bool skip_damaged) {
  return Planner(folder, report, skip_damaged).run();
}

Result<> carry_out(FileSystem& files, const DataDirectory& directory, const PartitionFolder& folder,
                   const RepairPlan& plan) {
  return Executor(files, directory, folder).run(plan);
}

}  // namespace millrace::kernel::cli
