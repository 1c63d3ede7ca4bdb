// What makes a partition leader or follower, and what each does for the other.
#include <algorithm>
#include <chrono>
#include <utility>

#include "kernel/partition/partition.h"
#include "kernel/partition/payload_reader.h"

namespace millrace::kernel {

namespace {

// One entry of what a leader has sent, as it goes into the log.
struct FetchedEntry {
  BatchParts parts;
  BatchHeader header;
  std::optional<TransactionMarker> marker;
};

Error not_continuous(Offset found, Offset due) {
  return {Errc::corrupt, "the leader has sent offset " + std::to_string(found.value) + " where " +
                             std::to_string(due.value) + " or more is due"};
}

// A batch of format V2, checked: its bytes are stored as they are.
Result<FetchedEntry> check_batch(const Buffer& batch) {
  FetchedEntry entry;
  MR_TRY(entry.header, read_batch_header(batch));
  if (!verify_crc(batch)) {
    return Error{Errc::corrupt, "the leader has sent a batch whose crc is wrong, at offset " +
                                    std::to_string(entry.header.base_offset.value)};
  }
  if (entry.header.control()) {
    MR_TRY(entry.marker, read_marker(entry.header, batch));
  }
  entry.parts = {.header = batch.slice(0, batch_header_bytes),
                 .body = batch.slice(batch_header_bytes),
                 .base_offset = entry.header.base_offset,
                 .last_offset = entry.header.last_offset(),
                 .max_timestamp = entry.header.max_timestamp};
  return entry;
}

// A message of an old format, or a wrapper of some, whose last offset is all that is known.
FetchedEntry old_entry(const EntryHead& head, const Buffer& message, Offset due) {
  FetchedEntry entry;
  entry.header.magic = head.magic;
  entry.header.base_offset = due;
  entry.header.last_offset_delta = static_cast<std::int32_t>(head.offset - due);
  entry.parts = {.header = {},
                 .body = message,
                 .base_offset = due,
                 .last_offset = head.offset,
                 .max_timestamp = {}};
  return entry;
}

// The whole entries of `records` that go on where the log ends. The answer may be cut within the
// last one, and begin with what is here already.
Result<std::vector<FetchedEntry>> entries_of(const Buffer& records, Offset due) {
  std::vector<FetchedEntry> entries;
  for (std::size_t at = 0; at < records.size();) {
    const auto head = read_entry_head(records.bytes().subspan(at));
    if (!head && head.error().code == Errc::out_of_range) break;
    if (!head) return head.error();
    if (head->total_bytes > records.size() - at) break;
    const auto bytes = records.slice(at, head->total_bytes);
    at += head->total_bytes;
    if (head->magic < 2) {
      if (head->offset < due) continue;
      entries.push_back(old_entry(*head, bytes, due));
    } else {
      MR_TRY(auto entry, check_batch(bytes));
      if (entry.parts.last_offset < due) continue;
      if (entry.parts.base_offset < due) return not_continuous(entry.parts.base_offset, due);
      entries.push_back(std::move(entry));
    }
    due = entries.back().parts.last_offset + 1;
  }
  return entries;
}

}  // namespace

// ---- roles ----

Task<> Partition::lead(Leadership leadership) {
  auto pass = running_.enter();
  if (!pass) co_return pass.error();
  MR_CO_TRY(const auto turn, co_await role_.lock());
  if (leadership.leader_epoch < leader_epoch_) co_return {};
  const bool goes_on = leading_ && leadership.leader_epoch == leader_epoch_;
  if (goes_on && leadership.partition_epoch <= partition_epoch_) co_return {};
  const auto end = log_->bounds().end;
  if (!goes_on) {
    leader_epoch_ = leadership.leader_epoch;
    epochs_.assign(leader_epoch_, end);
    if (!leading_) written_end_ = end;
    if (leadership.unclean) tell_unclean(end);
    replicas_.reset();
  }
  partition_epoch_ = leadership.partition_epoch;
  // A controller elsewhere answers a change of the in-sync set with that set alone (KIP-497).
  const bool same_replicas = goes_on && leadership.replicas.empty();
  if (!same_replicas && leadership.replicas.size() <= 1) {
    replicas_.reset();
  } else if (replicas_) {
    replicas_->update(leadership, host_.shard.now());
  } else if (!same_replicas) {
    replicas_ = std::make_unique<ReplicaSet>(host_.broker, leadership, end, host_.shard.now());
  }
  leading_ = true;
  if (!goes_on) append_failing_since_ = host_.shard.now();
  advance(written_end_);
  starts_moved_.notify_all();
  co_return {};
}

void Partition::count_lost(Offset from, Offset below) const {
  if (host_.lost) host_.lost->add(static_cast<std::uint64_t>(below - from));
}

void Partition::tell_unclean(Offset end) const {
  if (leaders_high_watermark_ <= end) {
    host_.log.error(
        "elected as leader without being in sync: what only others have is lost, from here on",
        {{"partition", to_string(id_)}, {"from", end.value}});
    return;
  }
  count_lost(end, leaders_high_watermark_);
  host_.log.error("elected as leader without being in sync: replicated records are lost",
                  {{"partition", to_string(id_)},
                   {"from", end.value},
                   {"to", leaders_high_watermark_.value - 1}});
}

Task<> Partition::follow(Epoch leader_epoch, bool led) {
  auto pass = running_.enter();
  if (!pass) co_return pass.error();
  MR_CO_TRY(const auto turn, co_await role_.lock());
  if (leader_epoch < leader_epoch_) co_return {};
  const bool compared = std::exchange(led_, led);
  if (!leading_ && leader_epoch == leader_epoch_ && (compared || !led)) co_return {};
  leader_epoch_ = leader_epoch;
  if (std::exchange(leading_, false)) {
    ++term_;
    partition_epoch_ = -1;
    replicas_.reset();
    if (std::exchange(hand_over_, false)) {
      hand_over_after_ = std::min(2 * hand_over_after_, hand_over_after_max);
    }
    high_watermark_moved_.notify_all();
    starts_moved_.notify_all();
    notify_watches();
  }
  // An epoch in which nothing was written says nothing of what is here.
  const auto bounds = log_->bounds();
  epochs_.truncate_from(bounds.end);
  // Where no epochs are known there is nothing to compare by: what is not replicated may be wrong.
  if (led && epochs_.newest() == Epoch{}) co_return co_await truncate_to(high_watermark_);
  co_return {};
}

// ---- the leader's side ----

// A follower asks: what it has is noted, or where it has left this log.
ErrorCode Partition::note_follower(const PartitionFetch& request, const ReadContext& context,
                                   PartitionFetched& answer) {
  if (!replicas_ || !replicas_->has(context.replica)) return ErrorCode::not_leader_or_follower;
  // An earlier lease is over, of a later one the controller has not told yet, or it is nobody's: it
  // says nothing, and whoever has it asks again (KIP-903). Every follower names its lease.
  if (context.replica_epoch != context.known_epoch) return ErrorCode::not_leader_or_follower;
  const auto bounds = log_->bounds();
  if (request.last_fetched_epoch != Epoch{}) {
    const auto common = epochs_.end_of(request.last_fetched_epoch, bounds.end);
    // From an epoch that this leader has not heard of: nothing of it may be cut for that.
    if (common.epoch == Epoch{}) return ErrorCode::unknown_leader_epoch;
    if (common.epoch < request.last_fetched_epoch || common.start < request.from) {
      answer.diverging_epoch = common.epoch;
      answer.diverging_end = common.start;
      return ErrorCode::none;
    }
  }
  if (request.from > bounds.end) {
    answer.diverging_epoch = epochs_.newest();
    answer.diverging_end = bounds.end;
    return ErrorCode::none;
  }
  if (request.from < bounds.start) return ErrorCode::offset_out_of_range;
  replicas_->fetched(context.replica, context.replica_epoch, request.from, bounds.end,
                     host_.shard.now());
  move_high_watermark(replicas_->replicated(written_end_));
  if (replicas_->begins(context.replica, request.log_start)) starts_moved_.notify_all();
  if (host_.in_sync && replicas_->may_join(context.replica, high_watermark_)) {
    host_.in_sync->in_sync_due(id_);
  }
  return ErrorCode::none;
}

RateLimit* Partition::send_limit(std::int32_t replica) const noexcept {
  const auto among = [replica](const std::vector<std::int32_t>& some) {
    return std::ranges::find(some, replica) != some.end();
  };
  if (replica < 0 || !replicas_ || among(replicas_->in_sync())) return nullptr;
  if (send_limits_.listed) return send_limits_.listed;
  return among(send_limits_.adding) ? send_limits_.moving : nullptr;
}

Duration Partition::held_back(std::int32_t replica) const {
  const auto* limit = send_limit(replica);
  return limit ? limit->wait(host_.shard.now()) : Duration::zero();
}

std::optional<WantedInSync> Partition::want_in_sync(LagLimits limits) {
  if (!serving() || !replicas_) return std::nullopt;
  if (replicas_->proposed()) return replicas_->proposed();
  std::optional<WantedInSync> wanted;
  if (shall_hand_over()) wanted = replicas_->without_self();
  if (wanted) {
    host_.log.warning(
        "this broker's storage takes no more of a partition; another one shall lead it",
        {{"partition", to_string(id_)}});
  } else {
    wanted = replicas_->review(limits, log_->bounds().end, high_watermark_, host_.shard.now());
  }
  if (wanted) replicas_->propose(*wanted);
  return wanted;
}

bool Partition::cannot_follow() const noexcept {
  if (leading_) return false;
  return write_failed_ ||
         (append_failed_ && host_.shard.now() - append_failing_since_ >= cannot_follow_after);
}

// A full disk may have room again in a moment. Where it does not, somebody else may have room, and
// nobody need wait for a follower.
void Partition::append_taken(bool taken) {
  const bool failed_before = std::exchange(append_failed_, !taken);
  if (taken) {
    hand_over_ = false;
    hand_over_after_ = hand_over_after_min;
    return;
  }
  const auto time = host_.shard.now();
  if (!failed_before) append_failing_since_ = time;
  if (cannot_follow()) ask_for_relief();
  if (!leading_ || time - append_failing_since_ < hand_over_after_) return;
  hand_over_ = true;
  ask_for_relief();
}

void Partition::lose_write() {
  write_failed_ = true;
  ask_for_relief();
}

// Each request that is refused asks, once a second at most.
void Partition::ask_for_relief() {
  if (!host_.in_sync || (leading_ && (!replicas_ || replicas_->proposing()))) return;
  const auto time = host_.shard.now();
  if (asked_for_relief_ != MonoTime{} && time - asked_for_relief_ < std::chrono::seconds(1)) {
    return;
  }
  asked_for_relief_ = time;
  host_.in_sync->in_sync_due(id_);
}

void Partition::refuse_in_sync() {
  if (!replicas_) return;
  replicas_->withdraw();
  advance(written_end_);
}

// ---- the follower's side ----

Result<FollowerStep> Partition::following(Epoch leader_epoch) const {
  if (closing_) return Error{Errc::closed, "the partition is closing"};
  if (leading_ || leader_epoch != leader_epoch_) {
    return Error{Errc::fenced, "it does not follow in this epoch any more"};
  }
  if (write_failed_) return Error{Errc::io, "an earlier write to this log failed"};
  return FollowerStep{.next = log_->bounds().end, .last_epoch = epochs_.newest()};
}

Task<FollowerStep> Partition::take_over(Epoch leader_epoch, PartitionFetched fetched) {
  MR_CO_TRY(const auto pass, running_.enter());
  MR_CO_TRY(const auto turn, co_await role_.lock());
  MR_CO_CHECK(following(leader_epoch));
  if (fetched.diverging_end != Offset{}) {
    const auto here = epoch_end(fetched.diverging_epoch);
    const auto bounds = log_->bounds();
    // Of the newest epoch that both know, the shorter part is common.
    auto end = here.epoch == Epoch{} ? high_watermark_ : here.start;
    end = std::min({end, fetched.diverging_end, bounds.end});
    MR_CO_CHECK(co_await truncate_to(std::max(end, bounds.start)));
  } else {
    MR_CO_CHECK(co_await append_fetched(std::move(fetched)));
  }
  co_return following(leader_epoch);
}

Task<> Partition::append_fetched(PartitionFetched fetched) {
  Buffer records;
  if (!fetched.records.empty()) {
    const bool in_files = std::ranges::any_of(fetched.records.parts(), [](const auto& part) {
      return std::holds_alternative<FileRange>(part);
    });
    auto open = [payload = std::move(fetched.records)] { return payload.flatten(); };
    if (in_files) {
      auto reading = on_worker(host_.environment.workers(), std::move(open));
      MR_CO_TRY(records, co_await std::move(reading));
    } else {
      MR_CO_TRY(records, open());
    }
  }
  if (!records.empty()) MR_CO_CHECK(co_await append_as_they_are(std::move(records)));
  const auto end = log_->bounds().end;
  if (fetched.high_watermark != Offset{}) {
    leaders_high_watermark_ = std::max(leaders_high_watermark_, fetched.high_watermark);
    move_high_watermark(std::min(fetched.high_watermark, end));
  }
  const auto start = std::min(fetched.log_start, end);
  if (start > log_->bounds().start) MR_CO_CHECK(co_await move_start(start));
  co_return {};
}

Task<> Partition::append_as_they_are(Buffer records) {
  MR_CO_TRY(const auto entries, entries_of(records, log_->bounds().end));
  if (entries.empty()) co_return {};
  std::vector<BatchParts> parts;
  parts.reserve(entries.size());
  for (const auto& entry : entries) parts.push_back(entry.parts);
  std::shared_ptr<const void> ahead;  // kept until all of it is appended
  if (auto* log = log_in_turns(records.size())) {
    auto writing = log->write_ahead(parts);
    auto written = co_await std::move(writing);
    if (!written && written.error().code == Errc::io) append_taken(false);
    if (!written) co_return std::move(written).error();
    ahead = *std::move(written);
  }
  const auto ticket = log_->append(parts);
  append_taken(ticket.has_value());
  if (!ticket) co_return ticket.error();
  for (const auto& entry : entries) {
    if (entry.header.magic < 2) continue;
    epochs_.assign(entry.header.partition_leader_epoch, entry.header.base_offset);
    take_note(entry.header, entry.marker);
  }
  const auto end = log_->bounds().end;
  const bool flush_due = end - flush_from_ >= config_.flush_messages;
  if (flush_due) flush_from_ = end;
  schedule_flush();
  auto written = co_await log_->written(*ticket);
  if (written && flush_due) written = co_await flush_to(end);
  if (!written) {
    lose_write();
    co_return std::move(written);
  }
  written_end_ = end;
  co_return {};
}

Task<FollowerStep> Partition::begin_anew(Epoch leader_epoch, Offset start) {
  MR_CO_TRY(const auto pass, running_.enter());
  MR_CO_TRY(const auto turn, co_await role_.lock());
  MR_CO_CHECK(following(leader_epoch));
  const auto before = log_->bounds();
  host_.log.warning("a log begins anew: its leader's has nothing of it",
                    {{"partition", to_string(id_)},
                     {"from", before.start.value},
                     {"below", before.end.value},
                     {"start", start.value}});
  MR_CO_CHECK(co_await drop_snapshots(Offset{-1}));
  MR_CO_CHECK(log_->reset_to(start));
  written_end_ = high_watermark_ = leaders_high_watermark_ = flush_from_ = start;
  note_cut(start);
  producers_.clear();
  aborted_.truncate_from(Offset{0});
  aborted_stored_ = start;
  epochs_ = EpochCache();
  MR_CO_CHECK(co_await store_epochs());
  co_return following(leader_epoch);
}

// What is cut was not replicated: nobody was told that it would stay, unless an unclean election
// has chosen so.
Task<> Partition::truncate_to(Offset end) {
  const auto before = log_->bounds().end;
  if (end >= before) co_return {};
  host_.log.warning("cut the tail of a log that its leader has not",
                    {{"partition", to_string(id_)}, {"from", end.value}, {"to", before.value - 1}});
  if (high_watermark_ > end) {
    count_lost(end, high_watermark_);
    host_.log.error(
        "replicated records are lost: an unclean election has chosen a leader without them",
        {{"partition", to_string(id_)},
         {"from", end.value},
         {"to", high_watermark_.value - 1},
         {"records", high_watermark_ - end}});
  }
  MR_CO_CHECK(co_await drop_snapshots(end));
  MR_CO_CHECK(log_->truncate_from(end));
  written_end_ = std::min(written_end_, end);
  high_watermark_ = std::min(high_watermark_, end);
  leaders_high_watermark_ = std::min(leaders_high_watermark_, end);
  flush_from_ = std::min(flush_from_, end);
  note_cut(end);
  epochs_.truncate_from(end);
  co_return co_await forget_producers();
}

// What is known of producers and of transactions is made anew from what is left.
Task<> Partition::forget_producers() {
  if (producers_.producers() == 0 && aborted_.rows().empty()) co_return {};
  producers_.clear();
  snapshot_at_ = Offset{0};
  MR_CO_TRY(const auto from, co_await restore_producers());
  if (aborted_.ends_behind(from)) MR_CO_CHECK(co_await cut_aborted(from));
  aborted_stored_ = std::min(aborted_stored_, from);
  MR_CO_CHECK(co_await replay(from, from));
  producers_.settle(high_watermark_);
  co_return {};
}

// Of records that go: others will stand at their offsets.
Task<> Partition::drop_snapshots(Offset end) {
  for (const auto kind : {AuxKind::producer_snapshot, AuxKind::aggregate_snapshot}) {
    MR_CO_TRY(const auto stored, co_await log_->aux(kind));
    for (const auto& one : stored) {
      if (one.at <= end) continue;
      MR_CO_CHECK(co_await log_->put_aux(kind, one.at, {}));
    }
  }
  co_return {};
}

}  // namespace millrace::kernel
