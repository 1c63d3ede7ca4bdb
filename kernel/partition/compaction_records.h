// The records of an opened V2 batch as they stand, so that those which stay are copied and not made
// anew.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <millrace/batch.h>

namespace millrace::kernel {

/// Views of the section that it was found in.
struct RawRecord {
  Bytes whole;   ///< with its length
  Bytes behind;  ///< what follows the timestamp
  std::int64_t timestamp_delta = 0;
  std::int32_t offset_delta = 0;
  std::optional<Bytes> key;
  bool has_value = false;

  Offset offset(Offset base) const noexcept { return base + offset_delta; }
  /// The distance may wrap.
  Timestamp timestamp(Timestamp base) const noexcept {
    return {static_cast<std::int64_t>(static_cast<std::uint64_t>(base.ms) +
                                      static_cast<std::uint64_t>(timestamp_delta))};
  }
};

/// Errc::corrupt: a length does not fit, or there are not as many as the header says.
Result<std::vector<RawRecord>> raw_records(const BatchHeader& header, Bytes section);

/// Records, one behind the other.
class RecordSection {
 public:
  void add(const RawRecord& record) { append(record.whole); }
  /// The same record where timestamps count from another base.
  void add(const RawRecord& record, Timestamp timestamp, Timestamp base);
  Buffer finish() &&;

 private:
  void append(Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void append_uvarint(std::uint64_t value);

  std::vector<std::byte> bytes_;
};

}  // namespace millrace::kernel
