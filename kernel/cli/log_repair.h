// Makes a log of what is sound of it. Nothing is deleted but indexes: what is taken out of a log is
// kept beside it. Offsets stay: an empty batch stands where records are lost.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <millrace/environment.h>

#include "kernel/cli/log_check.h"
#include "kernel/cli/log_place.h"

namespace millrace::kernel::cli {

enum class RepairAction {
  cut,             ///< the segment ends where its last sound batch does
  move_aside,      ///< damaged bytes go into a file of their own
  remove_indexes,  ///< of a segment; a broker makes them again
  set_aside,       ///< a file beside the log is renamed; a broker makes it again
};
std::string_view name_of(RepairAction action) noexcept;

struct RepairStep {
  RepairAction action = RepairAction::cut;
  std::string file;  ///< path
  std::size_t segment = 0;
  BadRegion region;     ///< of cut and move_aside
  std::string kept_in;  ///< path; empty: there is nothing to keep

  /// It changes a segment.
  bool is_of_log() const noexcept {
    return action == RepairAction::cut || action == RepairAction::move_aside;
  }
  /// Offsets for which an empty batch stands in afterwards.
  bool has_placeholder() const noexcept { return region.to >= region.from; }
};

struct RepairPlan {
  std::vector<RepairStep> steps;
  std::vector<std::string> left;  ///< what stays wrong, and what can be done
};

/// What can be done about the findings of `report`. Damage that is no torn tail is left unless
/// `skip_damaged`.
RepairPlan plan_repair(const PartitionFolder& folder, const PartitionReport& report,
                       bool skip_damaged);

/// Of the checkpoint files beside the partitions' folders.
RepairPlan plan_repair(const DataDirectory& directory);
Result<> carry_out(FileSystem& files, const DataDirectory& directory, const RepairPlan& plan);

/// Does it. The directory is locked by the caller. After a crash at any point the log is as before
/// or repaired, segment by segment, and planning again finishes it.  [blocks on the disk]
Result<> carry_out(FileSystem& files, const DataDirectory& directory, const PartitionFolder& folder,
                   const RepairPlan& plan);

}  // namespace millrace::kernel::cli
