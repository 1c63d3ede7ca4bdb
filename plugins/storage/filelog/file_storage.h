// The data directory: who owns it, which partitions it has, whether the last stop was clean.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <millrace/environment.h>
#include <millrace/observe.h>
#include <millrace/storage.h>

#include "checkpoints.h"
#include "file_log.h"

namespace millrace::filelog {

/// [control thread and data shards]
class FileStorage final : public Storage {
 public:
  FileStorage(Environment& environment, std::string data_folder, Log log)
      : environment_(environment),
        folder_(std::move(data_folder)),
        log_(std::move(log)),
        checkpoints_(environment.files(), folder_) {}

  Task<> lock() override;
  Task<std::vector<FoundPartition>> list() override;
  Task<Opened> open(TopicPartition partition, LogOptions options) override;
  Task<> remove(TopicPartition partition) override;
  Task<> checkpoint(CheckpointKind kind, std::vector<PartitionOffset> offsets) override;
  Task<std::vector<PartitionOffset>> checkpointed(CheckpointKind kind) override;
  Task<> close() override;

 private:
  Result<> take_folder();
  Result<bool> consume_clean_mark();
  Result<> write_clean_mark();
  Result<> remove_doomed_folders();
  Result<std::vector<FoundPartition>> find_partitions();
  Result<std::shared_ptr<OpenMark>> mark_open(const TopicPartition& partition, bool& clean);
  Result<RecoveredLog> recover_log(const TopicPartition& partition, const LogOptions& options,
                                   bool clean, Offset known_durable);
  Offset claimable(const PartitionOffset& wanted);
  Result<> remove_folder(const TopicPartition& partition);
  Result<> give_folder_back();
  std::string path_of(const TopicPartition& partition) const {
    return folder_ + "/" + to_string(partition);
  }

  Environment& environment_;
  const std::string folder_;
  const Log log_;
  Checkpoints checkpoints_;

  std::mutex mutex_;
  std::unique_ptr<FileSystem::Lock> owned_;
  bool started_clean_ = false;
  struct Use {
    std::weak_ptr<OpenMark> mark;  ///< expired while nobody has it open
    std::shared_ptr<KnownDurable> known_durable = std::make_shared<KnownDurable>(-1);
  };
  /// Every partition that was opened since the start; the others are as the last stop left them.
  std::map<TopicPartition, Use> opened_;
  /// Logs that ended without a clean close.
  const std::shared_ptr<std::atomic<unsigned>> lost_ = std::make_shared<std::atomic<unsigned>>(0);
};

}  // namespace millrace::filelog
