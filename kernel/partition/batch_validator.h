// What a partition accepts from producers, and the form in which it is stored: one V2 batch whose
// records are numbered from 0, of the topic's codec and timestamp type. Message sets V0 and V1 are
// converted; so are V2 batches where the topic's message.format.version asks for an old format.
// Pure functions: the same input gives the same answer on any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include <millrace/batch.h>
#include <millrace/broker.h>
#include <millrace/codec.h>

#include "kernel/partition/opening.h"
#include "kernel/partition/topic_config.h"

namespace millrace::kernel {

/// Why a partition's records are refused, as the client is told.
struct Refusal {
  ErrorCode error = ErrorCode::none;
  std::string message;
  std::vector<RecordError> record_errors;
  bool opens_too_large = false;  ///< as PartitionProduced says
};
template <class T>
using Checked = std::expected<T, Refusal>;

/// Larger batches are checked on a worker: to walk over all records of one of 100 MiB takes longer
/// than others of the shard should wait.
inline constexpr std::size_t checked_on_shard_bytes_max = 1UL << 20;

/// Records that passed all checks for which nothing must be opened.
struct Intake {
  Buffer records;
  /// Of the one V2 batch; none for a message set V0 or V1.
  std::optional<BatchHeader> header;
  /// Something must be decompressed, compressed or converted, or there is much to be checked:
  /// prepare() belongs on a worker.
  bool needs_worker = false;
  /// prepare() has it to check.
  bool crc_unchecked = false;
};

/// A batch as it will be stored, but for its offsets and leader epoch (which no crc covers).
struct ReadyBatch {
  BatchHeader header;
  Buffer body;
  /// Of an old format, whose magic the header has: what place_message_sets() makes the body of.
  std::optional<MessageSetBuilder> set;
};

/// max.message.bytes.
std::optional<Refusal> check_size(std::size_t bytes, const TopicConfig& config);

/// Size, magic, crc (of what is not large) and codec.  [any thread]
Checked<Intake> check_intake(const std::optional<Buffer>& records, const TopicConfig& config,
                             const ProduceFeatures& features, const Codecs& codecs);

/// What its batches may open to: max.decompressed.message.bytes, and what a broker bears.
std::size_t opened_limit(const Intake& intake, const TopicConfig& config) noexcept;
/// The most that prepare() gives beside what was sent: 0 where batches are stored as they came.
std::size_t kept_limit(const Intake& intake, const TopicConfig& config) noexcept;

/// Opens batches, checks counts, attributes and every record, and converts where needed. Refuses
/// what opens to more than `opened_max`, or than opened_limit().  [a worker, if needs_worker]
Checked<std::vector<ReadyBatch>> prepare(const Intake& intake, const TopicConfig& config,
                                         const Codecs& codecs, Timestamp now,
                                         std::size_t opened_max = opened_bytes_max);

}  // namespace millrace::kernel
