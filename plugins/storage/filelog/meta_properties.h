// meta.properties: whose the data directory is. Kafka's file, in the form of ZooKeeper days
// (version 0) and of today (version 1).
#pragma once

#include <string>
#include <string_view>

#include <millrace/result.h>
#include <millrace/storage.h>

namespace millrace::filelog {

/// Fields that are not there stay none. Errc::corrupt, or Errc::incompatible for a version that is
/// not known, names the file and the line.
Result<DirectoryOwner> read_meta_properties(std::string_view text, const std::string& path);
/// Version 1; `directory` is the directory's own id.
std::string write_meta_properties(const DirectoryOwner& owner, const Uuid& directory);

}  // namespace millrace::filelog
