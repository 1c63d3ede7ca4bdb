// How a run of a log's segments is exchanged for one that was written anew.
#include <algorithm>
#include <limits>

#include <millrace/filelog/text.h>

#include "file_log.h"
#include "rewrite.h"

namespace millrace::filelog {

namespace {

constexpr std::int64_t segment_offsets_max = std::numeric_limits<std::int32_t>::max();

}  // namespace

FileLog::~FileLog() {
  if (const auto claim = claim_.lock()) claim->log = nullptr;
}

Result<std::unique_ptr<LogRewrite>> FileLog::rewrite(Offset from, Offset to) {
  MR_CHECK(usable());
  const auto is_base = [this](Offset offset) {
    return std::ranges::binary_search(segments_, offset, {},
                                      [](const auto& segment) { return segment->base(); });
  };
  if (from >= to || !is_base(from) || !is_base(to)) {
    return Error{Errc::invalid_argument, say(folder_, ": no segments begin at ", from.value,
                                             " and, behind it, at ", to.value)};
  }
  if (to - from > segment_offsets_max) {
    return Error{Errc::out_of_range, say(folder_, ": offsets ", from.value, " to ", to.value,
                                         "; a segment spans ", segment_offsets_max, " at most")};
  }
  if (!claim_.expired()) {
    return Error{Errc::conflict, folder_ + ": another rewrite of this log is under way"};
  }
  auto claim = std::make_shared<RewriteClaim>(this, from, to);
  claim_ = claim;
  FileRewrite::Needs needs{host_.environment, host_.space, source(from, {}), mark_};
  return std::make_unique<FileRewrite>(std::move(needs), std::move(claim));
}

// What is about to be removed must not come back with a rewrite. Where a commit has named its swap
// file already, which takes a moment, that is undone, durably.
Result<> FileLog::lose_rewrite() {
  const auto claim = claim_.lock();
  if (!claim) return {};
  const std::lock_guard lock(claim->mutex);
  claim->lost = true;
  auto withdrawn = withdraw_swap(host_.environment.files(), folder_, *claim);
  if (!withdrawn) failed_ = withdrawn.error();
  return withdrawn;
}

Result<> FileLog::lose_rewrite_from(Offset first_removed) {
  const auto claim = claim_.lock();
  return claim && first_removed < claim->to ? lose_rewrite() : Result<>();
}

Result<> FileLog::lose_rewrite_before(Offset first_kept) {
  const auto claim = claim_.lock();
  return claim && claim->from < first_kept ? lose_rewrite() : Result<>();
}

Task<> FileLog::exchange(FileRewrite& rewrite) {
  MR_CO_TRY(const auto pass, background_.enter());
  // A gap behind a segment is compaction's only below the recovery point; else it is a loss.
  MR_CO_CHECK(co_await flush(rewrite.claim().to));
  MR_CO_CHECK(co_await aux_turn());
  aux_busy_ = true;
  CancelScope never_cancelled;
  auto turn = exchange_alone(rewrite).within(never_cancelled);
  auto done = co_await std::move(turn);
  aux_busy_ = false;
  aux_free_.notify_all();
  co_return done;
}

// Flushes and loads write indexes by their names: none may run while names change.
Task<> FileLog::exchange_alone(FileRewrite& rewrite) {
  auto done = co_await stage(rewrite);
  exchanging_ = true;
  while (done && (flushing_ || loads_ > 0)) {
    done = co_await (flushing_ ? flushed_ : loaded_).wait();
  }
  if (done) done = replace_segments(rewrite);
  exchanging_ = false;
  flushed_.notify_all();
  loaded_.notify_all();
  if (done) co_return {};
  const std::lock_guard lock(rewrite.claim().mutex);
  const auto withdrawn = withdraw_swap(host_.environment.files(), folder_, rewrite.claim());
  if (!withdrawn) failed_ = withdrawn.error();
  co_return done;
}

Task<> FileLog::stage(FileRewrite& rewrite) {
  MR_CO_CHECK(usable());
  std::vector<Offset> replaced;
  for (const auto& segment : segments_) {
    if (segment->base() >= rewrite.claim().from && segment->base() < rewrite.claim().to) {
      replaced.push_back(segment->base());
    }
  }
  const auto to = rewrite.claim().to;
  auto& floor = mark_->facts->claimed_below;
  floor = std::max(floor.load(), std::min(to, recovery_point_).value);
  auto work = [&rewrite, replaced = std::move(replaced), keep = host_.keep_recovery_point, to] {
    return rewrite.stage(replaced, [&keep, to] { return keep(to); });
  };
  co_return co_await on_worker(host_.environment.workers(), std::move(work));
}

// Nothing is waited for here. From the first name on only a restart could tell what is there,
// should one fail: it would finish the exchange.
Result<> FileLog::replace_segments(FileRewrite& rewrite) {
  auto& claim = rewrite.claim();
  {
    const std::lock_guard lock(claim.mutex);
    if (claim.lost) {
      return Error{Errc::conflict, say(folder_, ": offsets ", claim.from.value, " to ",
                                       claim.to.value, " have changed while they were rewritten")};
    }
  }
  MR_CHECK(usable());
  const auto base = [](const auto& segment) { return segment->base(); };
  const auto first = std::ranges::lower_bound(segments_, claim.from, {}, base);
  const auto behind = std::ranges::lower_bound(segments_, claim.to, {}, base);
  Timestamp modified;
  for (auto old = first; old != behind; ++old) modified = std::max(modified, (*old)->modified());
  as_closed_ = false;
  recent_.clear();
  rewrite.leave_to_recovery();
  auto done = discard(std::span(first, behind));
  if (done) {
    auto taken = rewrite.take_names(modified);
    if (taken) {
      *first = *std::move(taken);
      segments_.erase(first + 1, behind);
      host_.open_files.used(*first);
    } else {
      done = taken.error();
    }
  }
  if (!done) failed_ = done.error();
  return done;
}

}  // namespace millrace::filelog
