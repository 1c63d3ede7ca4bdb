#include "kernel/broker/scrubber.h"

#include <algorithm>
#include <utility>

namespace millrace::kernel {

namespace {

// Read at once: what a second may take, within these.
constexpr std::int64_t step_bytes_min = 128 << 10;
constexpr std::int64_t step_bytes_max = 1 << 20;

// Not while a broker that has just started has other things to do.
constexpr Duration first_after_max = std::chrono::minutes(10);
constexpr Duration pause_min = std::chrono::seconds(1);
// Ten thousand partitions in which there is nothing to look at must not hold up a shard.
constexpr Duration pause_between = std::chrono::milliseconds(1);

std::vector<SegmentInfo> complete_segments(ShardState& state, const TopicPartition& id) {
  const auto partition = state.find(id.topic, id.partition);
  if (!partition) return {};
  auto segments = partition->segments();
  std::erase_if(segments, [](const SegmentInfo& one) { return one.active || one.bytes == 0; });
  return segments;
}

// What is trimmed, cut, compacted or deleted while it is looked at is no damage.
bool is_there(ShardState& state, const TopicPartition& id, const SegmentInfo& segment) {
  const auto partition = state.find(id.topic, id.partition);
  if (!partition || partition->offsets().log_start >= segment.next) return false;
  return std::ranges::any_of(partition->segments(), [&segment](const SegmentInfo& one) {
    return one.base == segment.base && one.bytes == segment.bytes && !one.active;
  });
}

bool is_of_the_file(Errc code) {
  return code == Errc::corrupt || code == Errc::out_of_range || code == Errc::not_found ||
         code == Errc::io;
}

}  // namespace

Scrubber::Scrubber(const BrokerParts& parts, const BrokerConfig& config)
    : environment_(parts.environment),
      log_(parts.log),
      bytes_per_second_(config.number_of("log.scrub.bytes.per.second", 1'048'576)),
      interval_(std::chrono::milliseconds(config.number_of("log.scrub.interval.ms", 604'800'000))),
      corrupt_(parts.metrics.gauge("millrace_log_corrupt_batches",
                                   "Batches of log files whose checksum was wrong when they were "
                                   "last looked at")) {
  limit_.set_rate(bytes_per_second_, environment_.clock().now());
  limit_.count_with(
      parts.metrics.counter("millrace_log_scrubbed_bytes_total", "Log files that were read again"));
}

Task<> Scrubber::run(ShardState& state) {
  if (bytes_per_second_ == 0) co_return {};
  MR_CO_TRY(const auto inside, state.running().enter());
  Known known;
  auto wait = std::min(interval_, first_after_max);
  while (true) {
    MR_CO_CHECK(co_await sleep(wait));
    const auto began = state.shard().now();
    MR_CO_CHECK(co_await pass(state, &known));
    wait = std::max(interval_ - (state.shard().now() - began), pause_min);
  }
}

// Begins anywhere: else a broker that is started every day would never come to the last ones.
Task<> Scrubber::pass(ShardState& state, Known* known) {
  std::vector<TopicPartition> ids;
  for (const auto& partition : state.all()) ids.push_back(partition->id());
  if (!ids.empty()) {
    const auto first = environment_.random().next() % ids.size();
    std::ranges::rotate(ids, ids.begin() + static_cast<std::ptrdiff_t>(first));
  }
  std::erase_if(*known, [this, &state](const auto& one) {
    if (state.find(one.first.topic, one.first.partition)) return false;
    for (const auto& [base, spoilt] : one.second) corrupt_.add(-spoilt.batches);
    return true;
  });
  for (const auto& id : ids) {
    auto& files = (*known)[id];
    auto looking = look_at(state, id, &files);
    MR_CO_CHECK(co_await std::move(looking));
    if (files.empty()) known->erase(id);
    MR_CO_CHECK(co_await sleep(pause_between));
  }
  co_return {};
}

// One file that cannot be read keeps none of the others from being looked at.
Task<> Scrubber::look_at(ShardState& state, TopicPartition id, SpoiltFiles* files) {
  const auto segments = complete_segments(state, id);
  for (const auto& info : segments) {
    const auto known = files->find(info.base);
    Look look{.before = known == files->end() ? Spoilt() : known->second, .now = {}};
    auto looking = look_at(state, Segment{.partition = id, .info = info, .range = {}}, &look);
    const auto looked = co_await std::move(looking);
    if (!looked && looked.error().code == Errc::cancelled) co_return looked;
    if (!looked) {
      log_.error("a log file could not be read again; it is tried at the next pass",
                 {{"partition", to_string(id)},
                  {"from", info.base.value},
                  {"error", to_string(looked.error())}});
    }
    // What a look that ended early has not come to is as it was.
    if (!looked && look.now.batches < look.before.batches) continue;
    corrupt_.add(std::min<std::int64_t>(look.now.batches - look.before.batches, 0));
    if (look.now.batches > 0) {
      files->insert_or_assign(info.base, std::move(look.now));
    } else {
      files->erase(info.base);
    }
  }
  const auto left = complete_segments(state, id);
  std::erase_if(*files, [this, &left](const auto& one) {
    const auto is_this = [&one](const SegmentInfo& segment) { return segment.base == one.first; };
    if (std::ranges::any_of(left, is_this)) return false;
    corrupt_.add(-one.second.batches);
    return true;
  });
  co_return {};
}

// What is read names the file. Where not even that can be read, all of it counts.
Task<bool> Scrubber::open(ShardState& state, Segment* segment, Look* look) {
  const auto partition = state.find(segment->partition.topic, segment->partition.partition);
  if (!partition || !is_there(state, segment->partition, segment->info)) co_return false;
  const auto first = std::max(segment->info.base, partition->offsets().log_start);
  auto reading = partition->read_own(first, 1);
  const auto batches = co_await std::move(reading);
  if (!is_there(state, segment->partition, segment->info)) co_return false;
  if (!batches && batches.error().code == Errc::closed) co_return false;
  if (!batches && is_of_the_file(batches.error().code)) {
    note(*segment,
         {.position = 0,
          .end = segment->info.bytes,
          .from = {},
          .to = {},
          .what = to_string(batches.error())},
         look);
    co_return false;
  }
  if (!batches) co_return batches.error();
  if (batches->empty()) co_return false;
  const auto* range = std::get_if<FileRange>(&batches->parts().front());
  if (!range) co_return false;
  segment->range = *range;
  co_return true;
}

// A segment is a file of its own, so that its bytes are the file's.
Task<> Scrubber::look_at(ShardState& state, Segment segment, Look* look) {
  auto opening = open(state, &segment, look);
  MR_CO_TRY(const bool opened, co_await std::move(opening));
  if (!opened) co_return {};
  const auto file = segment.range.file;
  const auto end = segment.info.bytes;
  const auto bytes_max =
      static_cast<std::uint64_t>(std::clamp(bytes_per_second_, step_bytes_min, step_bytes_max));
  auto position = segment.range.offset;
  while (position < end) {
    if (const auto wait = limit_.wait(state.shard().now()); wait > Duration::zero()) {
      MR_CO_CHECK(co_await sleep(wait));
      continue;
    }
    // A file that is deleted takes room for as long as it is open.
    if (!is_there(state, segment.partition, segment.info)) co_return {};
    auto work = [file, position, end, bytes_max] {
      return scrub_step(*file, position, end, bytes_max);
    };
    auto working = on_worker(environment_.workers(), std::move(work));
    const auto step = co_await std::move(working);
    if (!step && step.error().code == Errc::cancelled) co_return step.error();
    if (!is_there(state, segment.partition, segment.info)) co_return {};
    if (!step) {  // the disk does not give it: from here on nobody knows
      note(
          segment,
          {.position = position, .end = end, .from = {}, .to = {}, .what = to_string(step.error())},
          look);
      co_return {};
    }
    limit_.charge(step->bytes, state.shard().now());
    for (const auto& one : step->corrupt) note(segment, one, look);
    position = step->next;
  }
  const auto more = look->now.batches - static_cast<std::int64_t>(told_max);
  if (more > 0 && look->now.batches != look->before.batches) {
    log_.error("more batches of a file on the disk are corrupt",
               {{"file", file->path()}, {"more", more}});
  }
  co_return {};
}

void Scrubber::note(const Segment& segment, const CorruptBatch& corrupt, Look* look) {
  auto& [before, now] = *look;
  if (++now.batches > before.batches) corrupt_.add(1);
  if (now.told.size() == told_max) return;
  now.told.push_back(corrupt.position);
  const bool known = std::ranges::find(before.told, corrupt.position) != before.told.end();
  if (!known) tell(segment, corrupt);
}

void Scrubber::tell(const Segment& segment, const CorruptBatch& corrupt) const {
  log_.error(
      "a batch on the disk is corrupt; who reads it is told so by its checksum. Another replica "
      "may have it: millrace log verify says what is lost",
      {{"partition", to_string(segment.partition)},
       {"file", segment.range.file ? segment.range.file->path() : std::string()},
       {"position", corrupt.position},
       {"bytes", corrupt.end - corrupt.position},
       {"from", corrupt.from == Offset{} ? segment.info.base.value : corrupt.from.value},
       {"to", corrupt.to == Offset{} ? (segment.info.next + -1).value : corrupt.to.value},
       {"error", corrupt.what}});
}

}  // namespace millrace::kernel
