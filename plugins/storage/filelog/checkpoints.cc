#include "checkpoints.h"

#include <algorithm>

#include "text.h"

namespace millrace::filelog {

namespace {

constexpr std::array<std::string_view, 3> file_names{
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
};
constexpr std::array all_kinds{CheckpointKind::recovery_point, CheckpointKind::high_watermark,
                               CheckpointKind::log_start};

// Takes the next line off the front of `text`.
std::string_view take_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  auto line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::optional<PartitionOffset> parse_line(std::string_view line) {
  const auto second = line.rfind(' ');
  if (second == std::string_view::npos || second == 0) return std::nullopt;
  const auto first = line.rfind(' ', second - 1);
  if (first == std::string_view::npos || first == 0) return std::nullopt;
  const auto partition = parse_number<std::int32_t>(line.substr(first + 1, second - first - 1));
  const auto offset = parse_number<std::int64_t>(line.substr(second + 1));
  if (!partition || !offset) return std::nullopt;
  return PartitionOffset{{std::string(line.substr(0, first)), *partition}, {*offset}};
}

}  // namespace

std::string write_checkpoint(const std::map<TopicPartition, Offset>& offsets) {
  auto text = say("0\n", offsets.size(), "\n");
  for (const auto& [partition, offset] : offsets) {
    text += say(partition.topic, " ", partition.partition, " ", offset.value, "\n");
  }
  return text;
}

Result<std::map<TopicPartition, Offset>> read_checkpoint(std::string_view text,
                                                         const std::string& path) {
  if (take_line(text) != "0") return Error{Errc::corrupt, path + ": line 1: expected version 0"};
  const auto count = parse_number<std::size_t>(take_line(text));
  if (!count) return Error{Errc::corrupt, path + ": line 2: expected the number of lines"};
  std::map<TopicPartition, Offset> offsets;
  for (std::size_t at = 0; at < *count; ++at) {
    const auto line = take_line(text);
    auto parsed = parse_line(line);
    if (!parsed) {
      return Error{Errc::corrupt, say(path, ": line ", at + 3,
                                      ": expected 'topic partition offset', found '", line, "'")};
    }
    offsets[std::move(parsed->partition)] = parsed->offset;
  }
  return offsets;
}

std::string Checkpoints::path_of(CheckpointKind kind) const {
  return folder_ + "/" + std::string(file_names[static_cast<std::size_t>(kind)]);
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
