#include "file_storage.h"

#include <algorithm>

#include <millrace/data_folder.h>
#include <millrace/filelog/names.h>
#include <millrace/filelog/text.h>

#include "meta_properties.h"
#include "recovery.h"

namespace millrace::filelog {

namespace {

/// Kafka's content of the mark of a clean stop.
constexpr std::string_view clean_mark_content = "{\"version\":0,\"brokerEpoch\":-1}";

}  // namespace

FileStorage::FileStorage(Environment& environment, std::string data_folder,
                         StorageSettings settings, Log log)
    : environment_(environment),
      folder_(std::move(data_folder)),
      settings_(settings),
      log_(std::move(log)),
      checkpoints_(environment.files(), folder_),
      doomed_(environment),
      space_(environment.files(), folder_, settings.reserve_bytes, doomed_),
      cold_reads_(environment.workers(), settings.cold),
      syncs_(environment.files(), environment.workers(), folder_) {}

// ---- the directory ----

Task<> FileStorage::lock() {
  auto work = [this] { return take_folder(); };
  co_return co_await on_worker(environment_.workers(), work);
}

Result<> FileStorage::take_folder() {
  auto& files = environment_.files();
  MR_CHECK(make_data_folder(files, folder_));
  MR_TRY(auto owned, files.lock(folder_ + "/" + std::string(lock_file)));
  // A directory of a later version stays as it is, its mark of a clean stop included.
  if (const auto owner = read_owner(); !owner && owner.error().code == Errc::incompatible) {
    return owner.error();
  }
  std::vector<Error> unreadable;
  MR_CHECK(checkpoints_.load(unreadable));
  MR_TRY(const bool clean, consume_clean_mark());
  for (const auto& error : unreadable) {
    log_.warning("a checkpoint file cannot be read; its partitions will be checked as a whole",
                 {{"reason", to_string(error)}});
  }
  MR_CHECK(remove_doomed_folders());
  const std::lock_guard lock(mutex_);
  owned_ = std::move(owned);
  started_clean_ = clean;
  return {};
}

// The mark is used up before any log is opened: a crash from here on is a crash.
Result<bool> FileStorage::consume_clean_mark() {
  auto& files = environment_.files();
  auto removed = files.remove(folder_ + "/" + std::string(clean_mark));
  if (!removed) {
    return removed.error().code == Errc::not_found ? Result<bool>(false) : removed.error();
  }
  MR_CHECK(files.sync_folder(folder_));
  return true;
}

Task<DirectoryOwner> FileStorage::owner() {
  auto work = [this] { return read_owner(); };
  co_return co_await on_worker(environment_.workers(), work);
}

Result<DirectoryOwner> FileStorage::read_owner() {
  const auto path = folder_ + "/" + std::string(owner_file);
  const auto content = read_file(environment_.files(), path);
  if (content) return read_meta_properties(content->text(), path);
  if (content.error().code == Errc::not_found) return DirectoryOwner{};
  return content.error();
}

Task<> FileStorage::set_owner(DirectoryOwner owner) {
  auto work = [this, owner = std::move(owner)] { return write_owner(owner); };
  co_return co_await on_worker(environment_.workers(), std::move(work));
}

// The file is Kafka's as much as ours: where it says what it should, it stays as it is.
Result<> FileStorage::write_owner(const DirectoryOwner& owner) {
  MR_TRY(const auto found, read_owner());
  const bool other_cluster = !found.cluster_id.empty() && found.cluster_id != owner.cluster_id;
  const bool other_broker = found.broker_id >= 0 && found.broker_id != owner.broker_id;
  const auto path = folder_ + "/" + std::string(owner_file);
  if (other_cluster || other_broker) {
    return Error{
        Errc::conflict,
        say(path, ": the directory is that of broker ", found.broker_id, " of cluster ",
            found.cluster_id, ", not of broker ", owner.broker_id, " of cluster ", owner.cluster_id,
            "; use another directory, or remove the file if you are sure")};
  }
  if (!found.cluster_id.empty() && found.broker_id >= 0) return {};
  const auto text = write_meta_properties(owner, environment_.random().uuid());
  return replace_file(environment_.files(), path, as_bytes(text));
}

Result<> FileStorage::remove_doomed_folders() {
  auto& files = environment_.files();
  MR_TRY(const auto listing, files.list(folder_));
  for (const auto& file : listing) {
    if (!file.is_folder || !is_doomed_folder(file.name)) continue;
    MR_CHECK(files.remove_tree(folder_ + "/" + file.name));
  }
  return {};
}

Task<std::vector<FoundPartition>> FileStorage::list() {
  auto work = [this] { return find_partitions(); };
  co_return co_await on_worker(environment_.workers(), work);
}

Result<std::vector<FoundPartition>> FileStorage::find_partitions() {
  auto& files = environment_.files();
  MR_TRY(const auto listing, files.list(folder_));
  std::vector<FoundPartition> found;
  for (const auto& file : listing) {
    if (!file.is_folder) continue;
    auto partition = parse_partition_folder(file.name);
    if (!partition) continue;
    const auto id = read_topic_id(files, folder_ + "/" + file.name);
    if (!id) {
      log_.warning("a partition's topic id cannot be read; the partition is kept",
                   {{"partition", file.name}, {"reason", to_string(id.error())}});
    }
    found.push_back({std::move(*partition), id ? *id : Uuid{}});
  }
  return found;
}

Task<> FileStorage::close() {
  auto work = [this] { return give_folder_back(); };
  co_return co_await on_worker(environment_.workers(), work);
}

Result<> FileStorage::give_folder_back() {
  {
    const std::lock_guard lock(mutex_);
    if (!owned_) return {};
  }
  MR_TRY(const auto found, find_partitions());
  MR_CHECK(store_recovery_points());
  const std::lock_guard lock(mutex_);
  bool clean = true;
  for (const auto& [partition, use] : opened_) {
    if (use.facts->lost) clean = false;
    if (!use.mark.expired()) {
      return Error{Errc::conflict, say(folder_, ": ", to_string(partition), " is still open")};
    }
  }
  // After a crash, what nobody has opened since has not been checked.
  for (const auto& entry : found) {
    if (!started_clean_ && !opened_.contains(entry.partition)) clean = false;
  }
  if (clean) MR_CHECK(write_clean_mark());
  owned_.reset();
  return {};
}

// A crash after the next start checks what was written since this stop, and no more.
Result<> FileStorage::store_recovery_points() {
  std::vector<PartitionOffset> points;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [partition, use] : opened_) {
      const Offset durable{use.facts->durable_end};
      if (durable.value >= 0) points.push_back({partition, durable});
    }
  }
  if (points.empty()) return {};
  return checkpoints_.put(CheckpointKind::recovery_point, points,
                          [](const PartitionOffset& wanted) { return wanted.offset; });
}

Result<> FileStorage::write_clean_mark() {
  return replace_file(environment_.files(), folder_ + "/" + std::string(clean_mark),
                      as_bytes(clean_mark_content));
}

// ---- partitions ----

Task<Opened> FileStorage::open(TopicPartition partition, LogOptions options) {
  Shard& shard = co_await this_shard();
  bool clean = false;
  MR_CO_TRY(auto mark, mark_open(partition, clean));
  // The work holds the mark too: a cancelled open ends when its recovery does.
  auto work = [this, partition, options, clean, mark] {
    return recover_log(partition, options, clean, Offset{mark->facts->durable_end});
  };
  MR_CO_TRY(auto recovered, co_await on_worker(environment_.workers(), std::move(work)));
  MR_CO_CHECK(co_await make_known(partition, recovered));
  Opened opened{.created = recovered.created,
                .checked_from = recovered.checked_from,
                .bytes_cut = recovered.bytes_cut,
                .cut_reason = recovered.cut_reason};
  auto lower = [this, partition](Offset offset) {
    return checkpoints_.lower_recovery_point(partition, offset);
  };
  auto keep = [this, partition](Offset offset) {
    return checkpoints_.raise_recovery_point(partition, offset);
  };
  auto& shared = of_shard(shard);
  LogHost host{environment_,   shard,   shared.open_files, shared.recent, shared.turns,
               space_,         doomed_, cold_reads_,       syncs_,        std::move(lower),
               std::move(keep)};
  opened.log = std::make_unique<FileLog>(std::move(host), path_of(partition), options,
                                         std::move(recovered), std::move(mark));
  co_return opened;
}

FileStorage::OfShard& FileStorage::of_shard(Shard& shard) {
  const std::lock_guard lock(mutex_);
  const auto each_max = settings_.open_files_max / environment_.shards().size();
  return of_shards_.try_emplace(&shard, shard, each_max).first->second;
}

Result<std::shared_ptr<OpenMark>> FileStorage::mark_open(const TopicPartition& partition,
                                                         bool& clean) {
  const std::lock_guard lock(mutex_);
  if (!owned_) return Error{Errc::internal, folder_ + ": not locked"};
  const auto [place, first_time] = opened_.try_emplace(partition);
  auto& use = place->second;
  if (!use.mark.expired()) {
    return Error{Errc::conflict, say(folder_, ": ", to_string(partition), " is open already")};
  }
  clean = started_clean_ && first_time;
  auto mark = std::make_shared<OpenMark>(use.facts);
  use.mark = mark;
  return mark;
}

Result<RecoveredLog> FileStorage::recover_log(const TopicPartition& partition,
                                              const LogOptions& options, bool clean,
                                              Offset known_durable) {
  RecoveryRequest request{
      .data_folder = folder_,
      .partition = partition,
      .options = options,
      .clean = clean,
      .recovery_point = checkpoints_.find(CheckpointKind::recovery_point, partition),
      .log_start = checkpoints_.find(CheckpointKind::log_start, partition),
      .now = environment_.clock().wall(),
  };
  // What this process has flushed itself may be more than was checkpointed.
  if (request.recovery_point) {
    request.recovery_point = std::max(*request.recovery_point, known_durable);
  }
  return recover(environment_.files(), request);
}

// A recovery point becomes known, and with the checkpoint, which is in the same folder, the name of
// a new partition durable: from now on a crash leaves a log that has one. Partitions that are
// opened at once share the writes.
Task<> FileStorage::make_known(TopicPartition partition, const RecoveredLog& recovered) {
  constexpr auto kind = CheckpointKind::recovery_point;
  const auto known = checkpoints_.find(kind, partition);
  if (!recovered.created && known && *known <= recovered.end) co_return {};
  const auto point = checkpoints_.note(kind, {partition, recovered.end});
  auto work = [this, point] { return checkpoints_.store(kind, point); };
  co_return co_await on_worker(environment_.workers(), std::move(work));
}

// The checkpoints first, so that a new log of this name does not inherit them. Once the folder's
// new name is durable the partition is gone; its files go later, at the latest with the next start.
// Partitions that are removed at once share the syncs.
Task<> FileStorage::remove(TopicPartition partition) {
  MR_CO_CHECK(forget_opened(partition));
  const auto forgotten = checkpoints_.note_forgotten(partition);
  const auto doomed = folder_ + "/" + doomed_folder(partition, environment_.random().uuid());
  auto rename = [this, partition, forgotten, doomed]() -> Result<std::uint64_t> {
    MR_CHECK(checkpoints_.store(forgotten));
    MR_CHECK(environment_.files().rename(path_of(partition), doomed));
    return ++folders_renamed_;
  };
  MR_CO_TRY(const auto renamed, co_await on_worker(environment_.workers(), std::move(rename)));
  auto sync = [this, renamed] { return sync_renamed(renamed); };
  MR_CO_CHECK(co_await on_worker(environment_.workers(), std::move(sync)));
  environment_.workers().submit([&files = environment_.files(), log = log_, doomed] {
    const auto gone = files.remove_tree(doomed);
    if (gone) return;
    log.warning("the files of a removed partition are still there; the next start tries again",
                {{"folder", doomed}, {"reason", to_string(gone.error())}});
  });
  co_return {};
}

Result<> FileStorage::forget_opened(const TopicPartition& partition) {
  const std::lock_guard lock(mutex_);
  const auto opened = opened_.find(partition);
  if (opened == opened_.end()) return {};
  if (!opened->second.mark.expired()) {
    return Error{Errc::conflict, say(folder_, ": ", to_string(partition),
                                     " is open; close it before it is removed")};
  }
  opened_.erase(opened);
  return {};
}

Result<> FileStorage::sync_renamed(std::uint64_t renamed) {
  const std::lock_guard lock(sync_mutex_);
  if (renames_synced_ >= renamed) return {};
  const auto by_now = folders_renamed_.load();
  MR_CHECK(environment_.files().sync_folder(folder_));
  renames_synced_ = by_now;
  return {};
}

// ---- checkpoints ----

// A log that was cut since the caller looked has less on disk than it says, one that was compacted
// may not be claimed to have less.
Offset FileStorage::claimable(const PartitionOffset& wanted) {
  const std::lock_guard lock(mutex_);
  const auto opened = opened_.find(wanted.partition);
  if (opened == opened_.end()) return wanted.offset;
  const auto& facts = *opened->second.facts;
  const Offset known{facts.durable_end};
  if (known.value < 0) return wanted.offset;
  return std::max(std::min(wanted.offset, known), Offset{facts.claimed_below});
}

Task<> FileStorage::checkpoint(CheckpointKind kind, std::vector<PartitionOffset> offsets) {
  auto work = [this, kind, offsets = std::move(offsets)] {
    return checkpoints_.put(kind, offsets, [this, kind](const PartitionOffset& wanted) {
      return kind == CheckpointKind::recovery_point ? claimable(wanted) : wanted.offset;
    });
  };
  co_return co_await on_worker(environment_.workers(), std::move(work));
}

Task<std::vector<PartitionOffset>> FileStorage::checkpointed(CheckpointKind kind) {
  co_return checkpoints_.all(kind);
}

}  // namespace millrace::filelog
