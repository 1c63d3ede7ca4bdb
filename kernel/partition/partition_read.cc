// What clients read: batches below the high watermark, in a format that they know, and offsets by
// time.
#include <algorithm>
#include <limits>
#include <utility>

#include "kernel/partition/conversion.h"
#include "kernel/partition/partition.h"

namespace millrace::kernel {

namespace {

// A search by time looks at so much of the log at once.
constexpr std::uint64_t search_step_bytes = 1UL << 20;

PartitionFetched failed(std::int32_t partition, ErrorCode error) {
  return {.partition = partition, .error = error};
}

}  // namespace

Task<PartitionFetched> Partition::read(PartitionFetch request, ReadContext context) {
  const auto number = request.partition;
  auto pass = running_.enter();
  if (!pass) co_return failed(number, ErrorCode::not_leader_or_follower);
  if (const auto error = check_leader(request.current_leader_epoch); error != ErrorCode::none) {
    co_return failed(number, error);
  }
  // KIP-110: a client that cannot know zstd is told so where every batch has it.
  if (!context.zstd && config_.compression_type == CompressionId::zstd) {
    co_return failed(number, ErrorCode::unsupported_compression_type);
  }
  const auto bounds = log_->bounds();
  PartitionFetched fetched{.partition = number};
  if (context.replica >= 0) {
    fetched.error = note_follower(request, context, fetched);
    fetched.log_start = bounds.start;  // it may have to begin anew there
    if (fetched.error != ErrorCode::none) co_return std::move(fetched);
  }
  fetched.high_watermark = high_watermark_;
  fetched.last_stable = readable_end(Horizon::last_stable);
  fetched.log_start = bounds.start;
  if (fetched.diverging_end != Offset{}) co_return std::move(fetched);
  if (request.from < bounds.start || request.from > bounds.end) {
    co_return failed(number, ErrorCode::offset_out_of_range);
  }
  if (held_back(context.replica) > Duration::zero()) co_return std::move(fetched);
  if (context.isolation == Isolation::read_committed) {
    fetched.aborted = aborted_.within(request.from, fetched.last_stable);
  }
  auto records = co_await (context.newest_magic < 2 ? read_converted(request, context)
                                                    : read_log(request, context));
  if (!records) co_return failed(number, read_failure(request, records.error()));
  fetched.records = *std::move(records);
  if (context.replica < 0) traffic_.read_bytes += fetched.records.size();
  if (auto* limit = send_limit(context.replica)) {
    limit->charge(fetched.records.size(), host_.shard.now());
  }
  // It may have taken long: somebody else may lead by now.
  if (!sole_leader()) co_return failed(number, ErrorCode::not_leader_or_follower);
  co_return std::move(fetched);
}

Task<Payload> Partition::read_log(PartitionFetch request, ReadContext context) {
  const auto limit = readable_end(context.horizon());
  const auto partition_bytes_max = static_cast<std::uint64_t>(std::max(request.bytes_max, 0));
  const ReadRequest wanted{.from = request.from,
                           .limit = limit,
                           .bytes_max = std::min(context.bytes_max, partition_bytes_max),
                           .at_least_one = context.at_least_one};
  if (request.from >= limit || (wanted.bytes_max == 0 && !wanted.at_least_one)) {
    co_return Payload();
  }
  co_return co_await log_->read(wanted);
}

// In format V0 or V1, which clients ask for that cannot rotate their partitions: each gets a batch
// however large. Goes on behind batches of which nothing is left.
Task<Payload> Partition::read_converted(PartitionFetch request, ReadContext context) {
  const auto limit = readable_end(context.horizon());
  const auto bytes_max = std::min<std::uint64_t>(
      {context.bytes_max, static_cast<std::uint64_t>(std::max(request.bytes_max, 0)),
       context.converted_bytes_max});
  if (context.bytes_max == 0) co_return Payload();
  for (auto next = request.from; next < limit;) {
    const ReadRequest step{.from = next, .limit = limit, .bytes_max = bytes_max};
    MR_CO_TRY(auto batches, co_await log_->read(step));
    if (batches.empty()) break;
    auto work = [batches = std::move(batches), magic = context.newest_magic, from = request.from,
                 codecs = host_.codecs](std::size_t opened_max) {
      return down_convert(batches, magic, from, codecs, opened_max);
    };
    auto converting = host_.opening.run(opened_bytes_max, std::move(work));
    MR_CO_TRY(auto converted, co_await std::move(converting));
    if (!converted.records.empty()) co_return std::move(converted.records);
    next = converted.next;
  }
  co_return Payload();
}

ErrorCode Partition::read_failure(const PartitionFetch& request, const Error& error) const {
  if (error.code == Errc::out_of_range) return ErrorCode::offset_out_of_range;  // trimmed meanwhile
  if (error.code == Errc::unsupported) return ErrorCode::unsupported_compression_type;
  host_.log.error(
      "read failed",
      {{"partition", to_string(id_)}, {"offset", request.from.value}, {"error", to_string(error)}});
  return error.code == Errc::corrupt ? ErrorCode::corrupt_message : ErrorCode::kafka_storage_error;
}

void Partition::watch(PartitionWatch& watch, Offset from, Horizon horizon) {
  watch.stop();
  if (closing_ || !leading_ || readable_end(horizon) > from) return watch.on_change(true);
  watches_.add(watch, from, horizon);
}

void Partition::notify_watches() {
  if (closing_ || !leading_) return watches_.release();
  watches_.notify([this](Horizon horizon) { return readable_end(horizon); });
}

Task<PartitionOffsetFound> Partition::find_offset(PartitionOffsetQuery query, Isolation isolation) {
  PartitionOffsetFound found{.partition = query.partition};
  auto pass = running_.enter();
  found.error = pass ? check_leader(query.current_leader_epoch) : ErrorCode::not_leader_or_follower;
  if (found.error != ErrorCode::none) co_return found;

  const auto limit = readable_end(horizon_of(isolation));
  if (query.segments_max > 0) {
    found.segments = segment_starts(query, limit);
    co_return found;
  }
  auto time = Timestamp{query.timestamp};
  switch (static_cast<OffsetSpec>(query.timestamp)) {
    case OffsetSpec::latest:
      found.offset = limit;
      found.leader_epoch = leader_epoch_;
      co_return found;
    case OffsetSpec::earliest:
    case OffsetSpec::earliest_local:
      found.offset = log_->bounds().start;
      found.leader_epoch = epochs_.epoch_of(found.offset);
      co_return found;
    case OffsetSpec::latest_tiered: co_return found;
    case OffsetSpec::max_timestamp: {
      MR_CO_TRY(time, co_await max_timestamp());
      break;
    }
    default:
      if (query.timestamp < 0) {
        found.error = ErrorCode::unsupported_version;
        co_return found;
      }
  }
  if (time == Timestamp{}) co_return found;
  MR_CO_TRY(const auto record, co_await find_record(time, limit));
  if (record) {
    found.offset = record->offset;
    found.timestamp = record->timestamp;
    found.leader_epoch = epochs_.epoch_of(record->offset);
  }
  co_return found;
}

// Newest first: the log's end and where its segments begin, as far as they were there at a time.
std::vector<Offset> Partition::segment_starts(const PartitionOffsetQuery& query,
                                              Offset limit) const {
  struct Point {
    Offset offset;
    Timestamp since;
  };
  const auto bounds = log_->bounds();
  std::vector<Point> points;
  for (const auto& segment : log_->segments()) {
    points.push_back({std::max(segment.base, bounds.start), segment.modified});
  }
  if (points.empty() || points.back().offset < bounds.end) points.push_back({bounds.end, now()});
  std::size_t left = 0;
  if (query.timestamp == static_cast<std::int64_t>(OffsetSpec::latest)) {
    left = points.size();
  } else if (query.timestamp == static_cast<std::int64_t>(OffsetSpec::earliest)) {
    left = 1;
  } else {
    for (left = points.size(); left > 0 && points[left - 1].since.ms > query.timestamp;) --left;
  }
  std::vector<Offset> starts;
  while (left > 0 && starts.size() < static_cast<std::size_t>(query.segments_max)) {
    const auto start = std::min(points[--left].offset, limit);
    if (starts.empty() || start < starts.back()) starts.push_back(start);
  }
  return starts;
}

// Storage may not have looked at every segment yet; a search for the end of time makes it.
Task<Timestamp> Partition::max_timestamp() {
  const auto unknown = std::ranges::any_of(log_->segments(), [](const SegmentInfo& segment) {
    return segment.bytes > 0 && segment.max_timestamp == Timestamp{};
  });
  if (unknown) {
    constexpr Timestamp end_of_time{std::numeric_limits<std::int64_t>::max()};
    MR_CO_CHECK(co_await log_->batch_at(end_of_time));
  }
  Timestamp newest;
  for (const auto& segment : log_->segments()) newest = std::max(newest, segment.max_timestamp);
  co_return newest;
}

// The first record at `time` or later that is below `limit`. What storage knows leads to a batch;
// the record may be behind it where the start has been moved, or where a header promises too much.
Task<std::optional<FoundRecord>> Partition::find_record(Timestamp time, Offset limit) {
  MR_CO_TRY(const auto position, co_await log_->batch_at(time));
  if (position.base_offset == Offset{}) co_return std::nullopt;
  const auto start = log_->bounds().start;
  for (auto next = std::max(position.base_offset, start); next < limit;) {
    const ReadRequest step{.from = next, .limit = limit, .bytes_max = search_step_bytes};
    MR_CO_TRY(auto batches, co_await log_->read(step));
    if (batches.empty()) break;
    auto work = [batches = std::move(batches), time, start,
                 codecs = host_.codecs](std::size_t opened_max) {
      return search_by_time(batches, time, start, codecs, opened_max);
    };
    auto searching = host_.opening.run(opened_bytes_max, std::move(work));
    MR_CO_TRY(const auto search, co_await std::move(searching));
    if (search.record) {
      if (search.record->offset >= limit) break;
      co_return search.record;
    }
    next = search.next;
  }
  co_return std::nullopt;
}

}  // namespace millrace::kernel
