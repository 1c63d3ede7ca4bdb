// Between format V2 and the message sets V0 and V1: for clients that read no newer, and for topics
// whose message.format.version keeps their log in an older one.
#pragma once

#include <cstdint>
#include <vector>

#include <millrace/codec.h>
#include <millrace/payload.h>

#include "kernel/partition/batch_validator.h"

namespace millrace::kernel {

/// So many bytes of messages are made of one batch at once. Of one that opens to more a client gets
/// the first part, as a set of its own, and asks for what follows: the whole would be in memory
/// several times over.
inline constexpr std::size_t converted_bytes_max = 16UL << 20;

/// Batches in a format that a client reads.
struct Converted {
  Payload records;
  Offset next;  ///< the first offset that was not converted
};

/// `batches` in format `newest_magic` or older, from the record at `from` on. Each batch keeps its
/// codec; headers and control batches are dropped, so nothing may be left. Ends early before a
/// batch that cannot be converted; when that is the first, its reason is the error:
/// Errc::unsupported for zstd, which old formats do not have, Errc::too_large when it would open to
/// more than `opened_max`. Also ends early, within a batch if need be, once converted_bytes_max are
/// made. Opens one batch at a time, reads files.  [a worker]
Result<Converted> down_convert(const Payload& batches, std::int8_t newest_magic, Offset from,
                               const Codecs& codecs, std::size_t opened_max = opened_bytes_max);

/// A batch that passed all checks, as a message set of format `magic` with offsets from 0; its body
/// is made by place_message_sets().  [a worker]
Checked<ReadyBatch> as_message_set(ReadyBatch batch, std::int8_t magic, const Codecs& codecs,
                                   std::size_t opened_max);

/// Gives message sets, one behind the other, the offsets from `base` on, and makes their bodies.
/// Compressed sets of format V0 have offsets inside: they are made here, when those are known.
/// [a worker]
Checked<std::vector<ReadyBatch>> place_message_sets(std::vector<ReadyBatch> batches, Offset base,
                                                    const TopicConfig& config,
                                                    const Codecs& codecs);

}  // namespace millrace::kernel
