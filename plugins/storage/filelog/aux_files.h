// What is kept beside a log, in files of their own: producer snapshots, leader epochs, aggregate
// snapshots, aborted transactions. Their content is the kernel's.  [a worker]
#pragma once

#include <string>
#include <vector>

#include <millrace/environment.h>
#include <millrace/storage.h>

namespace millrace::filelog {

/// Oldest first.
Result<std::vector<AuxEntry>> read_aux(FileSystem& files, const std::string& folder, AuxKind kind);
/// Durable when it returns. An empty value removes the entry; the newest few are kept.
Result<> write_aux(FileSystem& files, const std::string& folder, AuxKind kind, Offset at,
                   const Buffer& value);
/// The same in two halves, each of which a sync of the whole disk is to follow.
Result<> prepare_aux(FileSystem& files, const std::string& folder, AuxKind kind, Offset at,
                     const Buffer& value);
Result<> name_aux(FileSystem& files, const std::string& folder, AuxKind kind, Offset at,
                  const Buffer& value);

}  // namespace millrace::filelog
