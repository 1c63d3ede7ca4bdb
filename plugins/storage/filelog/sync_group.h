// What many logs bring to disk at once. Each would wait for the disk a few times, by itself for
// milliseconds; where many wait, the whole disk is synced for all of them instead.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <millrace/environment.h>

namespace millrace::filelog {

/// What one log has to bring to disk.  [its members run on a worker, one after the other]
struct SyncWork {
  /// `durably`: all of it is done when it returns. Else it is written and no more: a sync of the
  /// disk follows, and then finish().
  std::function<Result<>(bool durably)> write;
  std::function<Result<>()> finish;
  bool names = false;  ///< finish() changes names in folders, so that another sync follows it
};

class SyncGroup {
 public:
  /// More than these are synced together.
  static constexpr std::size_t one_by_one_max = 16;

  /// All logs are in `folder`. `files` and `pool` outlive the work; it may outlive this.
  SyncGroup(FileSystem& files, BlockingPool& pool, std::string folder);

  /// Completes when the work is on disk, or could not be brought there.
  Task<> run(SyncWork work);

 private:
  struct Waiting {
    SyncWork work;
    Shard* home;
    Resolver<> done;
    Result<> result;
  };
  struct Shared {
    FileSystem& files;
    BlockingPool& pool;
    const std::string folder;
    std::mutex mutex;
    std::deque<Waiting> waiting;  // guarded by mutex
    bool together = false;        // guarded by mutex: a group is under way
  };

  static void run_next(const std::shared_ptr<Shared>& shared);
  static void run_together(Shared& shared, std::deque<Waiting>& group);
  static void answer(Waiting waiting);

  std::shared_ptr<Shared> shared_;
};

}  // namespace millrace::filelog
