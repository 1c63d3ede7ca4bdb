// A disk in memory that forgets, at a crash, what was not synced: a prefix of the unsynced writes
// of each file survives, the last of them torn, or any sectors of that prefix, with what was there
// before, or zeros, between them; and of each folder a prefix of the creations, renames and
// removals since its last sync_folder. Which, the seed decides.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <millrace/environment.h>
#include <millrace/testing/sim_random.h>

namespace millrace::testing {

struct SimInode;

/// Outlives the files opened from it.  [the thread of the simulation]
class SimDisk final : public FileSystem {
 public:
  /// `note` is told what happens, for the trace; `wait` makes who called wait.
  SimDisk(Clock& clock, SimRandom& random, std::function<void(std::string)> note,
          std::function<void(Duration)> wait);
  ~SimDisk() override;

  Result<std::shared_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<FileInfo> info(const std::string& path) override;
  Result<std::vector<FileInfo>> list(const std::string& folder) override;
  Result<> make_folders(const std::string& path) override;
  Result<> rename(const std::string& from, const std::string& to) override;
  Result<> remove(const std::string& path) override;
  Result<> remove_tree(const std::string& path) override;
  Result<> sync_folder(const std::string& folder) override;
  Result<std::unique_ptr<Lock>> lock(const std::string& path) override;
  Result<SpaceInfo> space(const std::string& path) override;
  Result<> sync_all(const std::string& folder) override;

  /// The power goes. Until restart() every call fails with Errc::io; files opened before fail for
  /// ever, and locks are gone.
  void crash() { crash(true); }
  /// The process dies and the machine does not: as crash(), but nothing is forgotten.
  void kill() { crash(false); }
  /// The power goes in the midst of something: after so many more changes (writes, truncations,
  /// syncs, names made, moved or removed) the next one fails, and all that follows.
  void crash_after(std::uint64_t changes) noexcept { changes_left_ = changes; }
  void restart() noexcept {
    crashed_ = false;
    changes_left_.reset();
  }

  /// What fits on the disk: a write beyond it stores what fits and fails, as with ENOSPC.
  void limit_bytes(std::optional<std::uint64_t> bytes_max) noexcept { bytes_max_ = bytes_max; }
  /// While set, every sync fails and makes nothing durable.
  void fail_syncs(bool fail) noexcept { syncs_fail_ = fail; }
  /// While set, every write, truncation and sync of the files below `folder` fails: a bad spot.
  void fail_below(std::string folder) { bad_folder_ = std::move(folder); }
  /// From now on one in `times` changes, chosen by chance, takes up to so long, and its thread
  /// waits: a shard does nothing else meanwhile. Zero: none does.
  void slow_down(Duration longest, std::uint64_t times = 1) noexcept {
    slow_longest_ = longest;
    slow_times_ = times;
  }
  /// What is stored of the file stays on the disk alone, as when the memory was needed: reading it
  /// waits for the disk, and brings it back by pages. What is written from now on is in memory.
  Result<> forget_pages(const std::string& path);
  /// `waits` is called by whoever reads what is not in memory, with the path, before it is.
  void on_cold_read(std::function<void(const std::string&)> waits) {
    cold_read_ = std::move(waits);
  }
  /// How much of the file is not in memory.
  std::uint64_t cold_bytes(const std::string& path) const;
  /// Open now, by whomever.
  std::size_t files_open() const noexcept { return files_open_; }
  /// Turns one bit over, on the medium and in what is read: bit rot.
  Result<> flip_bit(const std::string& path, std::uint64_t position);

 private:
  friend class SimFile;
  class HeldLock;
  struct Place;

  void crash(bool forget);
  Result<> check_alive() const;
  /// Before a change: the place where a crash may happen.
  Result<> begin_change();
  Result<Place> place_of(const std::string& path) const;
  Result<std::shared_ptr<SimInode>> find(const std::string& path) const;
  std::uint64_t bytes_free() const;
  Result<> check_spot(const std::string& path) const;
  void note(std::string text) const { note_(std::move(text)); }

  Clock& clock_;
  SimRandom& random_;
  std::function<void(std::string)> note_;
  std::function<void(Duration)> wait_;
  std::shared_ptr<SimInode> root_;
  std::set<std::string> locked_;
  std::optional<std::uint64_t> bytes_max_;
  std::optional<std::uint64_t> changes_left_;
  std::uint64_t incarnation_ = 0;
  bool crashed_ = false;
  bool syncs_fail_ = false;
  std::string bad_folder_;
  Duration slow_longest_{};
  std::uint64_t slow_times_ = 1;
  std::size_t files_open_ = 0;
  std::function<void(const std::string&)> cold_read_;
};

}  // namespace millrace::testing
