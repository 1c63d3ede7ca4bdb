// How files and folders are called. Kafka's names: a partition is the folder TOPIC-PARTITION, a
// segment's files carry the offset of its first record in 20 digits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <millrace/types.h>

namespace millrace::filelog {

inline constexpr std::string_view log_suffix = ".log";
inline constexpr std::string_view offset_index_suffix = ".index";
inline constexpr std::string_view time_index_suffix = ".timeindex";
inline constexpr std::string_view aborted_suffix = ".txnindex";
inline constexpr std::string_view producer_suffix = ".snapshot";
inline constexpr std::string_view aggregate_suffix = ".aggregate";
/// Beside the `.log.swap` file of a rewrite, and named by the offset at which what that replaces
/// ends: empty, with the same mark.
inline constexpr std::string_view end_suffix = ".end";
/// Added to a name: about to be removed; being written by a compaction; replacing what it is named
/// after; being written by replace_file.
inline constexpr std::string_view deleted_mark = ".deleted";
inline constexpr std::string_view cleaned_mark = ".cleaned";
inline constexpr std::string_view swap_mark = ".swap";
inline constexpr std::string_view temporary_mark = ".tmp";

inline constexpr std::string_view leader_epochs_file = "leader-epoch-checkpoint";
inline constexpr std::string_view metadata_file = "partition.metadata";

/// In the data directory: held while a process owns it; whose it is; the mark of a clean stop, by
/// Kafka's name.
inline constexpr std::string_view lock_file = ".lock";
inline constexpr std::string_view owner_file = "meta.properties";
inline constexpr std::string_view clean_mark = ".kafka_cleanshutdown";

/// "00000000000000000017.log"
std::string offset_name(Offset offset, std::string_view suffix);

/// A file named by an offset: `suffix` is everything behind the digits, as in ".log.swap".
struct OffsetFile {
  Offset offset;
  std::string_view suffix;  ///< a part of the name that was parsed
};
std::optional<OffsetFile> parse_offset_name(std::string_view name);

/// "orders-3"; nothing else is a partition's folder.
std::optional<TopicPartition> parse_partition_folder(std::string_view name);

/// The name that a removed partition's folder has until it is gone: "orders-3.UNIQUE-delete".
std::string doomed_folder(const TopicPartition& partition, const Uuid& unique);
bool is_doomed_folder(std::string_view name);

}  // namespace millrace::filelog
