// The data directory: who owns it, which partitions it has, whether the last stop was clean.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <millrace/environment.h>
#include <millrace/observe.h>
#include <millrace/storage.h>

#include "checkpoints.h"
#include "cold_reads.h"
#include "file_log.h"
#include "open_files.h"
#include "space_guard.h"
#include "sync_group.h"
#include "write_turns.h"

namespace millrace::filelog {

struct StorageSettings {
  std::size_t open_files_max = 4096;         ///< of all shards together
  std::uint64_t reserve_bytes = 64UL << 20;  ///< of the disk, kept free of records
  ColdLimits cold = {};
};

/// [control thread and data shards]
class FileStorage final : public Storage {
 public:
  FileStorage(Environment& environment, std::string data_folder, StorageSettings settings, Log log);

  Task<> lock() override;
  Task<DirectoryOwner> owner() override;
  Task<> set_owner(DirectoryOwner owner) override;
  Task<std::vector<FoundPartition>> list() override;
  Task<Opened> open(TopicPartition partition, LogOptions options) override;
  Task<> remove(TopicPartition partition) override;
  Task<> checkpoint(CheckpointKind kind, std::vector<PartitionOffset> offsets) override;
  Task<std::vector<PartitionOffset>> checkpointed(CheckpointKind kind) override;
  Task<> close() override;

 private:
  Result<> take_folder();
  Result<DirectoryOwner> read_owner();
  Result<> write_owner(const DirectoryOwner& owner);
  Result<bool> consume_clean_mark();
  Result<> write_clean_mark();
  Result<> store_recovery_points();
  Result<> remove_doomed_folders();
  Result<std::vector<FoundPartition>> find_partitions();
  Result<std::shared_ptr<OpenMark>> mark_open(const TopicPartition& partition, bool& clean);
  Result<RecoveredLog> recover_log(const TopicPartition& partition, const LogOptions& options,
                                   bool clean, Offset known_durable);
  Task<> make_known(TopicPartition partition, const RecoveredLog& recovered);
  Offset claimable(const PartitionOffset& wanted);
  Result<> forget_opened(const TopicPartition& partition);
  Result<> sync_renamed(std::uint64_t renamed);
  Result<> give_folder_back();
  std::string path_of(const TopicPartition& partition) const {
    return folder_ + "/" + to_string(partition);
  }

  /// What the logs of one shard share.
  struct OfShard {
    OfShard(Shard& shard, std::size_t files_max) : open_files(files_max), turns(shard) {}
    OpenFiles open_files;
    RecentMemory recent;
    WriteTurns turns;
  };
  OfShard& of_shard(Shard& shard);

  Environment& environment_;
  const std::string folder_;
  const StorageSettings settings_;
  const Log log_;
  Checkpoints checkpoints_;
  DoomedFiles doomed_;
  SpaceGuard space_;
  ColdReads cold_reads_;
  SyncGroup syncs_;

  std::atomic<std::uint64_t> folders_renamed_ = 0;
  std::mutex sync_mutex_;
  std::uint64_t renames_synced_ = 0;  // guarded by sync_mutex_

  std::mutex mutex_;
  std::unique_ptr<FileSystem::Lock> owned_;
  bool started_clean_ = false;
  std::map<const Shard*, OfShard> of_shards_;
  struct Use {
    std::weak_ptr<OpenMark> mark;  ///< expired while nobody has it open
    std::shared_ptr<LogFacts> facts = std::make_shared<LogFacts>();
  };
  /// Every partition that was opened since the start; the others are as the last stop left them.
  std::map<TopicPartition, Use> opened_;
};

}  // namespace millrace::filelog
