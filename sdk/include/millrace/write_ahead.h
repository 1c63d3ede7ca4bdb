// An ability that a log may have: what is large is written in turns with others of its shard.
#pragma once

#include <memory>
#include <vector>

#include <millrace/storage.h>

namespace millrace {

/// A PartitionLog that can write what an append will, before it is one. Of a log that cannot,
/// append() is all there is.  [partition's shard]
class WriteAheadLog {
 public:
  static WriteAheadLog* of(PartitionLog& log) noexcept {
    return dynamic_cast<WriteAheadLog*>(&log);
  }

  /// Writes behind the log's end what append() of the same batches will, piece by piece, and lets
  /// others of the shard run in between. Nobody sees anything of it. That append() has nothing left
  /// to write, as long as the caller keeps the answer. Whatever else changes the log's tail, also
  /// meanwhile, makes it void: the answer is kept for nothing then, and append() writes all of it.
  /// An error (disk full) leaves the log as it was. After a crash the log may end with the whole of
  /// it, or, cut by recovery, without.
  virtual Task<std::shared_ptr<const void>> write_ahead(std::vector<BatchParts> batches) = 0;

 protected:
  ~WriteAheadLog() = default;
};

}  // namespace millrace
