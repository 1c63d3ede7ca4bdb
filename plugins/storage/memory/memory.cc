// Logs that live in memory: the reference semantics of storage.h. What is closed can be opened
// again within the same process; the end of the process is the end of the data.
#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

#include <millrace/system_plugin.h>

namespace millrace::memory {

namespace {

constexpr std::size_t snapshots_max = 3;

struct Batch {
  Offset base;
  Offset last;
  Timestamp max_timestamp;
  Buffer bytes;
};

struct Segment {
  Offset base;
  Timestamp opened;
  Timestamp modified;
  std::uint64_t bytes = 0;
  std::vector<Batch> batches;

  Timestamp max_timestamp() const {
    Timestamp newest;
    for (const auto& batch : batches) newest = std::max(newest, batch.max_timestamp);
    return newest;
  }
};

/// Held by a rewrite while it lives.
struct Claim {
  Offset from;
  Offset to;
  bool lost = false;  // something of the range has been removed
};

/// What outlives the closing of a log.
struct Data {
  std::weak_ptr<Claim> claim;  ///< expired: no rewrite is under way
  Uuid topic_id;
  bool open = false;
  Offset start{0};
  Offset end{0};
  std::vector<Segment> segments{Segment{Offset{0}}};
  std::map<AuxKind, std::map<Offset, Buffer>> aux;
};

Error out_of_range(std::string_view what, Offset offset, const Data& data) {
  return {Errc::out_of_range, std::string(what) + " offset " + std::to_string(offset.value) +
                                  "; the log has " + std::to_string(data.start.value) + " to " +
                                  std::to_string(data.end.value)};
}

// A copy: the body is a slice, and would keep the whole request.
Batch stored(const BatchParts& parts) {
  MutableBuffer whole(parts.header.size() + parts.body.size());
  whole.append(parts.header);
  whole.append(parts.body);
  return {parts.base_offset, parts.last_offset, parts.max_timestamp, std::move(whole).freeze()};
}

class MemoryRewrite final : public LogRewrite {
 public:
  MemoryRewrite(std::shared_ptr<Data> data, std::shared_ptr<Claim> claim)
      : data_(std::move(data)), claim_(std::move(claim)), segment_{.base = claim_->from} {}

  Result<> append(std::span<const BatchParts> batches) override {
    for (const auto& batch : batches) {
      const auto due = segment_.batches.empty() ? claim_->from : segment_.batches.back().last + 1;
      if (batch.base_offset < due || batch.last_offset < batch.base_offset ||
          batch.last_offset >= claim_->to) {
        return Error{Errc::out_of_range, "rewrite of offsets " +
                                             std::to_string(batch.base_offset.value) + " to " +
                                             std::to_string(batch.last_offset.value) + " where " +
                                             std::to_string(due.value) + " to " +
                                             std::to_string(claim_->to.value - 1) + " are due"};
      }
      segment_.batches.push_back(stored(batch));
      segment_.bytes += segment_.batches.back().bytes.size();
    }
    return {};
  }

  std::uint64_t bytes() const noexcept override { return segment_.bytes; }

  Task<> commit() override {
    if (!data_->open) co_return Error{Errc::closed, "the log is closed"};
    if (claim_->lost) {
      co_return Error{Errc::conflict, "segments of the rewrite have been removed meanwhile"};
    }
    auto& segments = data_->segments;
    const auto first = std::ranges::lower_bound(segments, claim_->from, {}, &Segment::base);
    const auto last = std::ranges::lower_bound(segments, claim_->to, {}, &Segment::base);
    auto& aborted = data_->aux[AuxKind::aborted_transactions];
    std::string joined;
    for (auto old = first; old != last; ++old) {
      segment_.modified = std::max(segment_.modified, old->modified);
      if (const auto found = aborted.extract(old->base)) joined += found.mapped().text();
    }
    segment_.opened = first->opened;
    if (!joined.empty()) aborted[claim_->from] = Buffer::copy_of(joined);
    *first = std::exchange(segment_, {});
    segments.erase(first + 1, last);
    claim_->lost = true;
    co_return {};
  }

 private:
  const std::shared_ptr<Data> data_;
  const std::shared_ptr<Claim> claim_;
  Segment segment_;
};

class MemoryLog final : public PartitionLog {
 public:
  MemoryLog(Clock& clock, LogOptions options, std::shared_ptr<Data> data)
      : clock_(clock), options_(options), data_(std::move(data)) {}

  Result<Ticket> append(std::span<const BatchParts> batches) override {
    if (batches.empty()) return Error{Errc::invalid_argument, "an append of nothing"};
    auto due = data_->end;
    std::uint64_t bytes = 0;
    for (const auto& batch : batches) {
      if (batch.base_offset < due || batch.last_offset < batch.base_offset) {
        return Error{Errc::internal, "append of offset " + std::to_string(batch.base_offset.value) +
                                         " where " + std::to_string(due.value) + " or more is due"};
      }
      due = batch.last_offset + 1;
      bytes += batch.header.size() + batch.body.size();
    }
    if (!has_room(bytes)) MR_CHECK(roll());
    auto& active = data_->segments.back();
    for (const auto& batch : batches) active.batches.push_back(stored(batch));
    active.bytes += bytes;
    active.modified = clock_.wall();
    data_->end = due;
    return Ticket{++tickets_};
  }

  Task<> written(Ticket /*ticket*/) override { co_return {}; }

  Task<Payload> read(ReadRequest request) override {
    if (request.from < data_->start || request.from > data_->end) {
      co_return out_of_range("read from", request.from, *data_);
    }
    Payload payload;
    if (request.limit <= request.from) co_return payload;
    for (const auto& segment : data_->segments) {
      auto batch = std::ranges::lower_bound(segment.batches, request.from, {}, &Batch::last);
      for (; batch != segment.batches.end(); ++batch) {
        if (batch->base >= request.limit) co_return payload;
        const bool fits = payload.size() + batch->bytes.size() <= request.bytes_max;
        if (!fits && !(payload.empty() && request.at_least_one)) co_return payload;
        payload.add(batch->bytes);
      }
    }
    co_return payload;
  }

  Task<BatchPosition> batch_at(Timestamp time) override {
    for (const auto& segment : data_->segments) {
      for (const auto& batch : segment.batches) {
        if (batch.last < data_->start || batch.max_timestamp < time) continue;
        co_return BatchPosition{std::max(batch.base, data_->start)};
      }
    }
    co_return BatchPosition{};
  }

  Task<> flush(Offset /*up_to*/) override { co_return {}; }

  Result<> truncate_from(Offset first_removed) override {
    if (first_removed >= data_->end) return {};
    if (first_removed < data_->start) return out_of_range("truncation to", first_removed, *data_);
    auto& segments = data_->segments;
    for (const auto& segment : segments) {
      for (const auto& batch : segment.batches) {
        if (batch.base < first_removed && batch.last >= first_removed) {
          return Error{Errc::invalid_argument, "cannot cut within a batch"};
        }
      }
    }
    if (const auto claim = data_->claim.lock(); claim && first_removed < claim->to) {
      claim->lost = true;
    }
    while (segments.size() > 1 && segments.back().base > first_removed) segments.pop_back();
    std::erase_if(segments.back().batches,
                  [&](const Batch& batch) { return batch.base >= first_removed; });
    segments.back().bytes = 0;
    for (const auto& batch : segments.back().batches) segments.back().bytes += batch.bytes.size();
    data_->end = first_removed;
    auto& aborted = data_->aux[AuxKind::aborted_transactions];
    aborted.erase(aborted.upper_bound(segments.back().base), aborted.end());
    return {};
  }

  Result<> trim_before(Offset first_kept) override {
    if (first_kept <= data_->start) return {};
    if (first_kept > data_->end) return out_of_range("trim to", first_kept, *data_);
    data_->start = first_kept;
    auto& segments = data_->segments;
    while (segments.size() > 1 && segments[1].base <= first_kept) segments.erase(segments.begin());
    if (const auto claim = data_->claim.lock(); claim && segments.front().base > claim->from) {
      claim->lost = true;
    }
    forget_aborted_before(segments.front().base);
    return {};
  }

  Result<> roll() override {
    if (data_->segments.back().batches.empty()) return {};
    data_->segments.push_back({.base = data_->end, .opened = clock_.wall()});
    return {};
  }

  Result<> reset_to(Offset start) override {
    if (const auto claim = data_->claim.lock()) claim->lost = true;
    data_->segments.assign(1, Segment{.base = start, .opened = clock_.wall()});
    data_->start = data_->end = start;
    data_->aux[AuxKind::aborted_transactions].clear();
    return {};
  }

  std::vector<SegmentInfo> segments() const override {
    std::vector<SegmentInfo> infos;
    for (const auto& segment : data_->segments) {
      const bool active = &segment == &data_->segments.back();
      infos.push_back({.base = segment.base,
                       .next = active ? data_->end : (&segment + 1)->base,
                       .bytes = segment.bytes,
                       .max_timestamp = segment.max_timestamp(),
                       .modified = segment.modified,
                       .active = active});
    }
    return infos;
  }

  LogBounds bounds() const noexcept override {
    LogBounds bounds{.start = data_->start, .end = data_->end, .recovery_point = data_->end};
    for (const auto& segment : data_->segments) bounds.bytes += segment.bytes;
    return bounds;
  }

  Task<std::vector<AuxEntry>> aux(AuxKind kind) override {
    std::vector<AuxEntry> entries;
    for (const auto& [at, value] : data_->aux[kind]) entries.push_back({at, value});
    co_return entries;
  }

  Task<> put_aux(AuxKind kind, Offset at, Buffer value) override {
    // Leader epochs are one text for the whole log.
    if (kind == AuxKind::leader_epochs) at = Offset{0};
    auto& entries = data_->aux[kind];
    if (value.empty()) {
      entries.erase(at);
      co_return {};
    }
    entries[at] = value.detach();
    const bool few = kind != AuxKind::aborted_transactions;
    if (few && entries.size() > snapshots_max) entries.erase(entries.begin());
    co_return {};
  }

  void reconfigure(const LogOptions& options) override { options_ = options; }

  Task<> close() override {
    data_->open = false;
    co_return {};
  }

  Result<std::unique_ptr<LogRewrite>> rewrite(Offset from, Offset to) override {
    const auto is_base = [&](Offset offset) {
      return std::ranges::binary_search(data_->segments, offset, {}, &Segment::base);
    };
    if (from >= to || !is_base(from) || !is_base(to)) {
      return Error{Errc::invalid_argument, "no segments begin at " + std::to_string(from.value) +
                                               " and at " + std::to_string(to.value)};
    }
    if (to - from > std::numeric_limits<std::int32_t>::max()) {
      return Error{Errc::out_of_range, "a segment spans no more than 2^31-1 offsets"};
    }
    if (!data_->claim.expired()) {
      return Error{Errc::conflict, "another rewrite of this log is under way"};
    }
    auto claim = std::make_shared<Claim>(from, to);
    data_->claim = claim;
    return std::make_unique<MemoryRewrite>(data_, std::move(claim));
  }

 private:
  void forget_aborted_before(Offset base) {
    auto& files = data_->aux[AuxKind::aborted_transactions];
    files.erase(files.begin(), files.lower_bound(base));
  }
  bool has_room(std::uint64_t bytes) const {
    const auto& active = data_->segments.back();
    if (active.batches.empty()) return true;
    const std::chrono::milliseconds age(clock_.wall().ms - active.opened.ms);
    return active.bytes + bytes <= options_.segment_bytes && age <= options_.segment_age;
  }

  Clock& clock_;
  LogOptions options_;
  const std::shared_ptr<Data> data_;
  std::uint64_t tickets_ = 0;
};

class MemoryStorage final : public Storage {
 public:
  explicit MemoryStorage(Clock& clock) : clock_(clock) {}

  Task<> lock() override { co_return {}; }
  Task<DirectoryOwner> owner() override { co_return owner_; }
  Task<> set_owner(DirectoryOwner owner) override {
    const bool new_to_us = owner_.cluster_id.empty();
    if (!new_to_us &&
        (owner_.cluster_id != owner.cluster_id || owner_.broker_id != owner.broker_id)) {
      co_return Error{Errc::conflict, "the directory is that of broker " +
                                          std::to_string(owner_.broker_id) + " of cluster " +
                                          owner_.cluster_id};
    }
    owner_ = std::move(owner);
    co_return {};
  }

  Task<std::vector<FoundPartition>> list() override {
    const std::lock_guard lock(mutex_);
    std::vector<FoundPartition> found;
    for (const auto& [partition, data] : logs_) found.push_back({partition, data->topic_id});
    co_return found;
  }

  Task<Opened> open(TopicPartition partition, LogOptions options) override {
    const std::lock_guard lock(mutex_);
    auto& data = logs_[partition];
    const bool created = data == nullptr;
    if (created) {
      data = std::make_shared<Data>();
      data->topic_id = options.topic_id;
      data->segments.front().opened = clock_.wall();
    }
    if (data->open || !data->claim.expired()) {
      co_return Error{Errc::conflict, to_string(partition) + " is open already"};
    }
    if (!options.topic_id.is_none() && data->topic_id != options.topic_id) {
      co_return Error{Errc::conflict, to_string(partition) + " belongs to another topic id"};
    }
    data->open = true;
    Opened opened{.created = created, .checked_from = data->end};
    opened.log = std::make_unique<MemoryLog>(clock_, options, data);
    co_return opened;
  }

  Task<> remove(TopicPartition partition) override {
    const std::lock_guard lock(mutex_);
    const auto found = logs_.find(partition);
    if (found == logs_.end()) co_return Error{Errc::not_found, to_string(partition)};
    if (found->second->open || !found->second->claim.expired()) {
      co_return Error{Errc::conflict, to_string(partition) + " is open"};
    }
    logs_.erase(found);
    for (auto& [kind, offsets] : checkpoints_) offsets.erase(partition);
    co_return {};
  }

  Task<> checkpoint(CheckpointKind kind, std::vector<PartitionOffset> offsets) override {
    const std::lock_guard lock(mutex_);
    for (const auto& entry : offsets) checkpoints_[kind][entry.partition] = entry.offset;
    co_return {};
  }

  Task<std::vector<PartitionOffset>> checkpointed(CheckpointKind kind) override {
    const std::lock_guard lock(mutex_);
    std::vector<PartitionOffset> offsets;
    for (const auto& [partition, offset] : checkpoints_[kind]) {
      offsets.push_back({partition, offset});
    }
    co_return offsets;
  }

  Task<> close() override { co_return {}; }

 private:
  Clock& clock_;
  DirectoryOwner owner_;
  std::mutex mutex_;
  std::map<TopicPartition, std::shared_ptr<Data>> logs_;
  std::map<CheckpointKind, std::map<TopicPartition, Offset>> checkpoints_;
};

}  // namespace

class MemoryPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    return registrar.add(std::make_unique<MemoryStorage>(host.environment().clock()));
  }
};

}  // namespace millrace::memory

MILLRACE_SYSTEM_PLUGIN(millrace::memory::MemoryPlugin, .kind = "storage",
                       .id = "org.millrace.storage.memory", .version = MILLRACE_VERSION,
                       .summary = "logs in memory, gone with the process");
