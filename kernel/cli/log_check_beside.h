// What stands beside the segments of a partition. All of it but partition.metadata is made again
// from the log.
#pragma once

#include <vector>

#include "kernel/cli/log_check.h"

namespace millrace::kernel::cli {

/// How the names of files end in which a repair keeps what it has taken out of a log.
inline constexpr std::string_view damaged_mark = ".damaged";

/// In the log, batches of `epoch` begin here.
struct EpochStart {
  Epoch epoch;
  Offset start;
};

struct BesideRequest {
  const DataDirectory& directory;
  const PartitionFolder& folder;
  const std::vector<EpochStart>& epochs;
};

/// Adds what it finds to `report`, whose bounds and regions are there.
Result<> check_beside(FileSystem& files, const BesideRequest& request, PartitionReport& report);

}  // namespace millrace::kernel::cli
