// The two indexes of a segment against its log. Rows may be missing, for a broker completes an
// index; but where one stands it must lead to a batch.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <millrace/environment.h>
#include <millrace/filelog/index.h>

#include "kernel/cli/log_walk.h"

namespace millrace::kernel::cli {

class IndexCheck {
 public:
  /// Reads the files; one that is missing is not checked.
  static Result<IndexCheck> begin(FileSystem& files, std::string offset_index_path,
                                  std::string time_index_path, Offset base);

  /// What the log has, in its order.
  void see(const SoundBatch& batch);
  void see(const BadRegion& region);

  struct Wrong {
    std::string path;
    std::uint64_t position = 0;  ///< of the first row that is wrong
    std::string what;
  };
  /// At most one for each file.
  std::vector<Wrong> finish(std::uint64_t log_bytes) &&;

 private:
  explicit IndexCheck(Offset base) : base_(base) {}
  void pass_rows(std::uint64_t position);
  void pass_times(std::int64_t offset);
  void offset_wrong(std::string what);
  void time_wrong(std::string what);

  Offset base_;
  std::string offset_path_;
  std::string time_path_;
  std::optional<Buffer> offset_file_;
  std::vector<filelog::OffsetIndex::Row> rows_;
  std::vector<filelog::TimeIndex::Row> times_;
  std::size_t row_at_ = 0;
  std::size_t time_at_ = 0;
  std::int64_t newest_ = std::numeric_limits<std::int64_t>::min();
  std::optional<Wrong> wrong_row_;
  std::optional<Wrong> wrong_time_;
};

}  // namespace millrace::kernel::cli
