// What an aggregate keeps of its state beside its log: keys and values under a crc.
//
//   "MRAS"  version 1 (int16)  crc-32c of all that follows (int32)
//   offset (int64)  entries (int64)
//   each entry: length of the key (uvarint), key, length of the value (uvarint), value
#pragma once

#include <cstdint>
#include <vector>

#include <millrace/aggregate.h>

namespace millrace::kernel {

/// [one shard]
class SnapshotFileWriter final : public SnapshotWriter {
 public:
  SnapshotFileWriter();
  void put(Bytes key, Bytes value) override;
  /// The state holds all events below `at`. The writer is spent.
  Buffer finish(Offset at) &&;

 private:
  void put_bytes(Bytes bytes);

  std::vector<std::byte> file_;
  std::int64_t entries_ = 0;
};

/// Shows the entries of a file that has been checked.  [one shard]
class SnapshotFileReader final : public SnapshotReader {
 public:
  /// Errc::corrupt says what is wrong, Errc::incompatible that a later version has written it; `at`
  /// is what the file must say of itself.
  static Result<SnapshotFileReader> open(Buffer file, Offset at);
  std::optional<Entry> next() override;

 private:
  explicit SnapshotFileReader(Buffer file);

  Buffer file_;
  Bytes rest_;
};

}  // namespace millrace::kernel
