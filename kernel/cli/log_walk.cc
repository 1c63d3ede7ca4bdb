#include "kernel/cli/log_walk.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <millrace/bytes.h>
#include <millrace/filelog/text.h>

namespace millrace::kernel::cli {

using filelog::check_crc;
using filelog::EntryScanner;
using filelog::say;

namespace {

constexpr std::int64_t relative_offset_max = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t search_chunk_bytes = std::size_t{1} << 20;
constexpr std::size_t head_bytes = 17;  // up to and including the magic byte
constexpr std::size_t length_at = 8;
constexpr std::size_t holes_max = 1024;
constexpr std::int32_t length_min = 14;  // of a message of format V0

template <class T>
bool fails(const Result<T>& done, Errc code) {
  return !done && done.error().code == code;
}

// Its numbers count one batch's records, whatever order they stand in.
std::int64_t offsets_in(const SoundBatch& batch) { return batch.entry.last - batch.entry.base + 1; }

Epoch epoch_of(const SoundBatch& batch) {
  return batch.header ? batch.header->partition_leader_epoch : Epoch{};
}

// Messages name the file and the byte first; who prints a region does that itself.
std::string without_place(const std::string& what, const File& file) {
  const auto place = file.path() + ": byte ";
  if (!what.starts_with(place)) return what;
  const auto colon = what.find(": ", place.size());
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

}  // namespace

SegmentWalker::SegmentWalker(const File& file, std::uint64_t bytes, Offset base, Offset next)
    : file_(file),
      bytes_(bytes),
      base_(base),
      next_(next),
      due_{base, {}},
      due_before_held_(due_) {}

Result<std::optional<SegmentWalker::Item>> SegmentWalker::next() {
  while (ready_.empty()) {
    if (position_ >= bytes_) {
      if (!held_) return std::nullopt;
      release_held();
      break;
    }
    MR_CHECK(take_next());
  }
  std::optional<Item> item(std::move(ready_.front()));
  ready_.pop_front();
  return item;
}

Result<> SegmentWalker::take_next() {
  MR_TRY(auto judged, judge(position_));
  if (judged.sound) {
    accept(*judged.sound);
    return {};
  }
  if (!judged.previous) return skip_bad(std::move(judged));
  // What is at `position_` fits to what is before the held one, which is therefore the wrong one.
  const auto bad = *std::exchange(held_, std::nullopt);
  due_ = due_before_held_;
  if (!holes_.empty() && holes_.back().position == bad.entry.position) holes_.pop_back();
  MR_TRY(auto batch, judge(position_));
  if (!batch.sound) return skip_bad(std::move(batch));
  // With what is bad in front of it, it is one region.
  const auto before = std::exchange(region_before_held_, std::nullopt);
  ready_.emplace_back(BadRegion{
      .position = before ? before->position : bad.entry.position,
      .end = bad.entry.end(),
      .from = due_.offset,
      .to = batch.sound->entry.base + -1,
      .epoch = due_.epoch,
      .what = say("a batch of offsets ", bad.entry.base.value, " to ", bad.entry.last.value,
                  " and leader epoch ", epoch_of(bad).value, " in front of one of offset ",
                  batch.sound->entry.base.value, " and epoch ", epoch_of(*batch.sound).value)});
  accept(*batch.sound, true);
  return {};
}

void SegmentWalker::release_held() {
  if (region_before_held_) ready_.emplace_back(*std::exchange(region_before_held_, std::nullopt));
  if (held_) ready_.emplace_back(*std::exchange(held_, std::nullopt));
}

void SegmentWalker::accept(SoundBatch batch, bool behind_region) {
  release_held();
  // What a region stands for is no hole; nor is it known of old formats what is one.
  if (batch.entry.base > due_.offset && batch.entry.magic == 2 && !behind_region) {
    if (holes_.size() == holes_max) holes_.erase(holes_.begin(), holes_.begin() + holes_max / 2);
    holes_.push_back(
        {batch.entry.position, due_.offset, batch.entry.base + -1, batch.entry.base - due_.offset});
  }
  due_before_held_ = due_;
  due_ = {batch.entry.last + 1, std::max(due_.epoch, epoch_of(batch))};
  position_ = batch.entry.end();
  held_ = batch;
}

Result<SegmentWalker::Judged> SegmentWalker::judge(std::uint64_t position) {
  EntryScanner scanner(file_, position, bytes_);
  auto entry = scanner.next();
  Judged judged;
  if (!entry) {
    const auto code = entry.error().code;
    if (code != Errc::out_of_range && code != Errc::corrupt) return entry.error();
    judged.torn = code == Errc::out_of_range;
    judged.what = without_place(entry.error().detail, file_);
    return judged;
  }
  judged.head = **entry;
  SoundBatch batch{.entry = **entry, .header = {}};
  if (auto checked = check_crc(file_, batch.entry); !checked) {
    if (!fails(checked, Errc::corrupt)) return checked.error();
    judged.what = without_place(checked.error().detail, file_);
    return judged;
  }
  if (batch.entry.magic == 2) {
    std::byte head[batch_header_bytes];
    MR_TRY(const auto read, file_.read_at(position, head));
    auto header = parse_batch_header(Bytes(head).first(read));
    if (!header) {
      judged.what = header.error().detail;
      return judged;
    }
    if (header->partition_leader_epoch < Epoch{}) {
      judged.what = say("leader epoch ", header->partition_leader_epoch.value);
      return judged;
    }
    batch.header = *header;
  }
  if (auto wrong = wrong_order(batch, due_)) {
    judged.previous = blames_previous(batch);
    judged.what = std::move(*wrong);
    return judged;
  }
  judged.sound = batch;
  return judged;
}

std::optional<std::string> SegmentWalker::wrong_order(const SoundBatch& batch,
                                                      const Due& due) const {
  const auto& entry = batch.entry;
  const auto of = say("batch of offsets ", entry.base.value, " to ", entry.last.value);
  if (entry.base < due.offset) return say(of, " where ", due.offset.value, " or more is due");
  if (next_.value >= 0 && entry.last >= next_) {
    return say(of, " reaches into the next segment, which starts at ", next_.value);
  }
  if (entry.last - base_ > relative_offset_max) return say(of, " is too far from the file's name");
  if (const auto epoch = epoch_of(batch); epoch.value >= 0 && epoch < due.epoch) {
    return say(of, " is of leader epoch ", epoch.value, ", behind one of ", due.epoch.value);
  }
  return std::nullopt;
}

// Offsets and leader epoch stand outside the checksum. Without the batch before, this one would
// follow, with just the offsets between that the other has records for.
bool SegmentWalker::blames_previous(const SoundBatch& batch) const {
  if (!held_ || wrong_order(batch, due_before_held_)) return false;
  if (batch.entry.base >= due_.offset) return true;  // the epoch alone is wrong
  return batch.entry.base - due_before_held_.offset >= offsets_in(*held_) || held_->entry.magic < 2;
}

Result<> SegmentWalker::skip_bad(Judged judged) {
  release_held();
  BadRegion region{.position = position_,
                   .from = due_.offset,
                   .epoch = due_.epoch,
                   .what = std::move(judged.what)};
  std::optional<SoundBatch> behind;
  // Where its length is right, what follows is right behind it.
  if (judged.head) {
    MR_TRY(behind, sound_at(judged.head->end()));
  }
  if (!behind) {
    MR_TRY(region.zeros, filelog::all_zero(file_, position_, bytes_));
  }
  if (!behind && !region.zeros) {
    MR_TRY(behind, find_sound(position_ + 1));
  }
  if (behind) {
    region.end = behind->entry.position;
    region.to = behind->entry.base + -1;
    MR_CHECK(find_displaced(region));
    accept(*behind, true);
    region_before_held_ = std::move(region);
    return {};
  }
  region.end = bytes_;
  MR_CHECK(find_displaced(region));
  position_ = bytes_;
  region.to_file_end = true;
  region.torn = judged.torn || region.zeros;
  if (region.zeros) region.what = "zeros up to the end of the file";
  // What it says of itself, where all of it agrees.
  if (judged.head && judged.head->base == due_.offset && judged.head->end() == bytes_) {
    std::byte head[batch_header_bytes];
    MR_TRY(const auto read, file_.read_at(judged.head->position, head));
    const auto header = parse_batch_header(Bytes(head).first(read));
    if (header && header->record_count == header->last_offset_delta + 1) {
      region.to = header->last_offset();
    }
  }
  ready_.emplace_back(std::move(region));
  return {};
}

// Batches that were swapped: who stands in front of what should be before it leaves a hole there.
Result<> SegmentWalker::find_displaced(BadRegion& region) {
  for (auto position = region.position; position < region.end && !holes_.empty();) {
    EntryScanner scanner(file_, position, region.end);
    const auto entry = scanner.next();
    if (fails(entry, Errc::out_of_range) || fails(entry, Errc::corrupt)) return {};
    if (!entry) return entry.error();
    const auto& batch = **entry;
    const auto checked = check_crc(file_, batch);
    if (fails(checked, Errc::corrupt)) return {};
    if (!checked) return checked.error();
    const auto hole = std::ranges::find_if(holes_, [&batch](const Hole& one) {
      return one.from <= batch.base && batch.last <= one.to;
    });
    if (hole != holes_.end()) {
      hole->missing -= batch.last - batch.base + 1;
      region.displaced.push_back(
          {position, hole->position, batch.base, batch.last, hole->missing == 0});
    }
    position = batch.end();
  }
  return {};
}

Result<std::optional<SoundBatch>> SegmentWalker::sound_at(std::uint64_t position) {
  if (position >= bytes_) return std::nullopt;
  MR_TRY(auto judged, judge(position));
  return judged.sound;
}

bool SegmentWalker::may_begin(Bytes head, std::uint64_t position) const {
  const auto magic = static_cast<std::int8_t>(head[batch_magic_at]);
  if (magic < 0 || magic > 2) return false;
  const auto length = load_be<std::int32_t>(head.data() + length_at);
  if (length < length_min) return false;
  if (position + batch_prefix_bytes + static_cast<std::uint64_t>(length) > bytes_) return false;
  const Offset offset{load_be<std::int64_t>(head.data())};
  if (offset < due_.offset || offset - base_ > relative_offset_max) return false;
  return next_.value < 0 || offset < next_;
}

// Byte by byte: of a batch whose length is wrong nobody knows where it ends.
Result<std::optional<SoundBatch>> SegmentWalker::find_sound(std::uint64_t from) {
  std::vector<std::byte> chunk(search_chunk_bytes);
  while (from + head_bytes <= bytes_) {
    const auto wanted = std::min<std::uint64_t>(chunk.size(), bytes_ - from);
    MR_TRY(const auto read, file_.read_at(from, MutableBytes(chunk).first(wanted)));
    if (read < head_bytes) break;
    for (std::size_t at = 0; at + head_bytes <= read; ++at) {
      if (!may_begin(Bytes(chunk).subspan(at, head_bytes), from + at)) continue;
      MR_TRY(auto found, sound_at(from + at));
      if (found) return found;
    }
    from += read - head_bytes + 1;
  }
  return std::nullopt;
}

}  // namespace millrace::kernel::cli
