#include "checkpoints.h"

namespace millrace::filelog {

namespace {

constexpr std::array all_kinds{CheckpointKind::recovery_point, CheckpointKind::high_watermark,
                               CheckpointKind::log_start, CheckpointKind::cleaner};

}  // namespace

std::string Checkpoints::path_of(CheckpointKind kind) const {
  return folder_ + "/" + std::string(checkpoint_file(kind));
}

Result<> Checkpoints::load(std::vector<Error>& unreadable) {
  const std::lock_guard lock(mutex_);
  for (const auto kind : all_kinds) {
    const auto path = path_of(kind);
    const auto content = read_file(files_, path);
    if (!content) {
      if (content.error().code == Errc::not_found) continue;
      return content.error();
    }
    auto offsets = read_checkpoint(content->text(), path);
    if (offsets) {
      of(kind).offsets = std::move(*offsets);
    } else if (offsets.error().code == Errc::incompatible) {
      return offsets.error();
    } else {
      unreadable.push_back(std::move(offsets).error());
    }
  }
  return {};
}

std::optional<Offset> Checkpoints::find(CheckpointKind kind, const TopicPartition& partition) {
  const std::lock_guard lock(mutex_);
  const auto& offsets = of(kind).offsets;
  const auto found = offsets.find(partition);
  return found == offsets.end() ? std::nullopt : std::optional(found->second);
}

std::vector<PartitionOffset> Checkpoints::all(CheckpointKind kind) {
  const std::lock_guard lock(mutex_);
  std::vector<PartitionOffset> found;
  found.reserve(of(kind).offsets.size());
  for (const auto& [partition, offset] : of(kind).offsets) found.push_back({partition, offset});
  return found;
}

Result<> Checkpoints::put(CheckpointKind kind, const std::vector<PartitionOffset>& offsets,
                          const Claimable& claimable) {
  std::unique_lock lock(mutex_);
  for (const auto& wanted : offsets) of(kind).offsets[wanted.partition] = claimable(wanted);
  const auto change = ++of(kind).changes;
  lock.unlock();
  return store(kind, change);
}

std::uint64_t Checkpoints::note(CheckpointKind kind, const PartitionOffset& offset) {
  const std::lock_guard lock(mutex_);
  of(kind).offsets[offset.partition] = offset.offset;
  return ++of(kind).changes;
}

Result<> Checkpoints::lower_recovery_point(const TopicPartition& partition, Offset offset) {
  std::unique_lock lock(mutex_);
  auto& points = of(CheckpointKind::recovery_point);
  const auto found = points.offsets.find(partition);
  if (found == points.offsets.end() || found->second <= offset) return {};
  found->second = offset;
  const auto change = ++points.changes;
  lock.unlock();
  return store(CheckpointKind::recovery_point, change);
}

Result<> Checkpoints::raise_recovery_point(const TopicPartition& partition, Offset offset) {
  std::unique_lock lock(mutex_);
  auto& points = of(CheckpointKind::recovery_point);
  const auto [found, is_new] = points.offsets.try_emplace(partition, offset);
  if (is_new || found->second < offset) {
    found->second = offset;
    ++points.changes;
  }
  const auto change = points.changes;
  lock.unlock();
  return store(CheckpointKind::recovery_point, change);
}

Checkpoints::Changes Checkpoints::note_forgotten(const TopicPartition& partition) {
  const std::lock_guard lock(mutex_);
  Changes changes{};
  for (const auto kind : all_kinds) {
    if (of(kind).offsets.erase(partition) == 0) continue;
    changes[static_cast<std::size_t>(kind)] = ++of(kind).changes;
  }
  return changes;
}

Result<> Checkpoints::store(const Changes& changes) {
  for (const auto kind : all_kinds) {
    MR_CHECK(store(kind, changes[static_cast<std::size_t>(kind)]));
  }
  return {};
}

// Whoever writes takes along what others have changed by then: many partitions that are opened at
// once cost few writes.
Result<> Checkpoints::store(CheckpointKind kind, std::uint64_t change) {
  auto& kept = of(kind);
  const std::lock_guard turn(kept.writing);
  std::unique_lock lock(mutex_);
  if (kept.stored >= change) return {};
  const auto taken = kept.changes;
  const auto text = write_checkpoint(kept.offsets);
  lock.unlock();
  MR_CHECK(replace_file(files_, path_of(kind), as_bytes(text)));
  lock.lock();
  kept.stored = taken;
  return {};
}

}  // namespace millrace::filelog
