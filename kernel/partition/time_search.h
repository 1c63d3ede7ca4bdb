// Finds the record that a timestamp leads to, inside the batches that storage has narrowed it down
// to.
#pragma once

#include <optional>

#include <millrace/codec.h>
#include <millrace/payload.h>
#include <millrace/types.h>

namespace millrace::kernel {

struct FoundRecord {
  Offset offset;
  Timestamp timestamp;
};

/// What the batches of one payload say.
struct TimeSearch {
  std::optional<FoundRecord> record;
  Offset next;  ///< none was found: the first offset behind the payload
};

/// The first record at or beyond `from` whose timestamp is `time` or later. Opens batches and reads
/// files. Errc::too_large when one would open to more than `opened_max`.  [a worker]
Result<TimeSearch> search_by_time(const Payload& batches, Timestamp time, Offset from,
                                  const Codecs& codecs, std::size_t opened_max);

}  // namespace millrace::kernel
