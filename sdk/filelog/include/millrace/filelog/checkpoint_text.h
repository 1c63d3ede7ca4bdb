// The offsets that a data directory keeps for its partitions, one text file a kind, in Kafka's
// format: "0", the number of lines, then "topic partition offset" lines.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <millrace/result.h>
#include <millrace/storage.h>

namespace millrace::filelog {

/// "recovery-point-offset-checkpoint", and so on: in the data directory.
std::string_view checkpoint_file(CheckpointKind kind) noexcept;

/// The text of a checkpoint file, and back. Errc::corrupt, or Errc::incompatible for a version that
/// is not known, says which line.
std::string write_checkpoint(const std::map<TopicPartition, Offset>& offsets);
Result<std::map<TopicPartition, Offset>> read_checkpoint(std::string_view text,
                                                         const std::string& path);

}  // namespace millrace::filelog
