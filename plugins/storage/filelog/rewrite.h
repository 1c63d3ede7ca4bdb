// Segments that are written anew: a compaction's output, from its first byte until it is ready to
// take their place. FORMAT.md has the names and the order in which they come.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/environment.h>
#include <millrace/storage.h>

#include "segment.h"
#include "space_guard.h"

namespace millrace::filelog {

class FileLog;
class OpenMark;

/// What a rewrite and its log know of each other. A cut of the log waits for the mutex: what it
/// removes must not come back with the swap file that a worker is about to name.
struct RewriteClaim {
  RewriteClaim(FileLog* of, Offset first, Offset behind) : log(of), from(first), to(behind) {}

  FileLog* log;  ///< none once it is closed  [its shard]
  const Offset from;
  const Offset to;
  std::mutex mutex;
  bool lost = false;  ///< something of the range has gone, or the log has; guarded by mutex
  bool swap = false;  ///< a crash would finish it: the swap file has its name; guarded by mutex
};

class FileRewrite final : public LogRewrite {
 public:
  struct Needs {
    Environment& environment;
    SpaceGuard& space;
    SegmentSource source;  ///< of what it becomes
    std::shared_ptr<OpenMark> mark;
  };
  FileRewrite(Needs needs, std::shared_ptr<RewriteClaim> claim);
  ~FileRewrite() override;
  FileRewrite(const FileRewrite&) = delete;
  FileRewrite& operator=(const FileRewrite&) = delete;

  Result<> append(std::span<const BatchParts> batches) override;
  std::uint64_t bytes() const noexcept override { return bytes_; }
  Task<> commit() override;

  RewriteClaim& claim() const noexcept { return *claim_; }
  /// Everything on disk but the exchange: when it returns a crash finishes that. `keep_durable`
  /// makes the checkpoint know that the range is. `replaced` are the bases of the old segments.
  /// [a worker]
  using KeepDurable = std::function<Result<>()>;
  Result<> stage(const std::vector<Offset>& replaced, const KeepDurable& keep_durable);
  /// The exchange begins: what it does not reach a restart finishes.  [partition's shard]
  void leave_to_recovery();
  /// Gives the files the names of what they replace, and the segment that has them.
  /// [partition's shard]
  Result<std::shared_ptr<Segment>> take_names(Timestamp modified);

 private:
  Result<> begin();
  Result<> check_order(std::span<const BatchParts> batches) const;
  Result<> join_aborted(const std::vector<Offset>& replaced);
  Result<> name_swaps();
  std::string path(std::string_view suffix, std::string_view mark) const;
  std::string end_marker() const;

  const Needs needs_;
  const std::shared_ptr<RewriteClaim> claim_;
  FileSystem& files_;
  std::shared_ptr<Segment> segment_;
  std::uint64_t bytes_ = 0;
  bool begun_ = false;      // there may be a file
  bool staging_ = false;    // there may be more files than the log
  bool aborted_ = false;    // there is a text of aborted transactions
  bool exchanged_ = false;  // its files are the log's
};

/// Takes the swap file's name away again, durably, so that no crash finishes it. Held: the claim's
/// mutex.  [any thread]
Result<> withdraw_swap(FileSystem& files, const std::string& folder, RewriteClaim& claim);

}  // namespace millrace::filelog
