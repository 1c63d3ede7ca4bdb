#include "kernel/partition/producer_state.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include <millrace/bytes.h>

namespace millrace::kernel {

namespace {

// The file: version, crc of what follows, number of rows, rows.
constexpr std::int16_t snapshot_version = 1;
constexpr std::size_t crc_at = 2;
constexpr std::size_t count_at = 6;
constexpr std::size_t rows_at = 10;
constexpr std::size_t row_bytes = 46;

}  // namespace

std::int32_t sequence_after(std::int32_t sequence, std::int32_t steps) noexcept {
  constexpr std::int64_t sequences = std::int64_t{1} << 31;
  return static_cast<std::int32_t>((std::int64_t{sequence} + steps) % sequences);
}

ProducerStates::Verdict ProducerStates::check(const BatchHeader& header) const {
  const auto found = producers_.find(header.producer_id);
  // A producer that we do not know any more goes on from where it is.
  if (found == producers_.end()) return Accepted{};
  const auto& producer = found->second;
  const auto who = "producer " + std::to_string(header.producer_id);
  if (header.producer_epoch < producer.epoch) {
    return Refused{ErrorCode::invalid_producer_epoch,
                   who + " has epoch " + std::to_string(header.producer_epoch) + ", but epoch " +
                       std::to_string(producer.epoch) + " has written since"};
  }
  if (header.producer_epoch > producer.epoch) {
    if (header.base_sequence == 0) return Accepted{};
    return Refused{ErrorCode::out_of_order_sequence_number,
                   who + " begins epoch " + std::to_string(header.producer_epoch) +
                       " with sequence " + std::to_string(header.base_sequence) + ", expected 0"};
  }
  const auto last_sequence = sequence_after(header.base_sequence, header.last_offset_delta);
  for (const auto& batch : producer.batches) {
    if (batch.first_sequence == header.base_sequence && batch.last_sequence == last_sequence) {
      return Duplicate{batch.last_offset + -batch.offset_delta, batch.last_offset};
    }
  }
  const auto expected = sequence_after(producer.last_sequence(), 1);
  if (header.base_sequence == expected) return Accepted{};
  return Refused{ErrorCode::out_of_order_sequence_number,
                 who + " sent sequence " + std::to_string(header.base_sequence) + ", expected " +
                     std::to_string(expected)};
}

ProducerStates::Producer& ProducerStates::in_epoch(const BatchHeader& header, Timestamp now) {
  auto& producer = producers_[header.producer_id];
  if (producer.epoch != header.producer_epoch) producer.batches.clear();
  producer.epoch = header.producer_epoch;
  producer.newest_record = header.max_timestamp;
  producer.last_seen = now;
  return producer;
}

void ProducerStates::append(const BatchHeader& header, Timestamp now) {
  if (header.producer_id < 0 || header.control()) return;
  auto& producer = in_epoch(header, now);
  producer.batches.push_back(
      {.first_sequence = header.base_sequence,
       .last_sequence = sequence_after(header.base_sequence, header.last_offset_delta),
       .last_offset = header.last_offset(),
       .offset_delta = header.last_offset_delta});
  if (producer.batches.size() > batches_kept_max) producer.batches.pop_front();
  if (header.transactional() && producer.transaction_first == Offset{}) {
    producer.transaction_first = header.base_offset;
    open_.insert(header.base_offset);
  }
}

std::optional<ProducerStates::Refused> ProducerStates::check_marker(
    std::int64_t producer_id, std::int16_t producer_epoch, const TransactionMarker& marker) const {
  const auto found = producers_.find(producer_id);
  if (found == producers_.end()) return std::nullopt;
  const auto& producer = found->second;
  const auto who = "the end of a transaction of producer " + std::to_string(producer_id);
  if (producer_epoch < producer.epoch) {
    return Refused{ErrorCode::invalid_producer_epoch,
                   who + " has epoch " + std::to_string(producer_epoch) + ", but epoch " +
                       std::to_string(producer.epoch) + " has written since"};
  }
  if (marker.coordinator_epoch < producer.coordinator_epoch) {
    return Refused{ErrorCode::transaction_coordinator_fenced,
                   who + " is of coordinator epoch " + std::to_string(marker.coordinator_epoch) +
                       ", but epoch " + std::to_string(producer.coordinator_epoch) +
                       " has written since"};
  }
  return std::nullopt;
}

std::optional<AbortedRow> ProducerStates::end_transaction(const BatchHeader& header,
                                                          const TransactionMarker& marker,
                                                          Timestamp now) {
  auto& producer = in_epoch(header, now);
  producer.coordinator_epoch = marker.coordinator_epoch;
  const auto first = std::exchange(producer.transaction_first, Offset{});
  if (first == Offset{}) return std::nullopt;  // it had no records here
  const auto last = header.last_offset();
  open_.erase(first);
  decided_[last] = first;
  if (marker.commit) return std::nullopt;
  return AbortedRow{.producer_id = header.producer_id,
                    .first = first,
                    .last = last,
                    .last_stable = open_.empty() ? last + 1 : *open_.begin()};
}

Offset ProducerStates::first_unstable() const {
  Offset first = open_.empty() ? Offset{} : *open_.begin();
  for (const auto& [marker, begin] : decided_) {
    if (first == Offset{} || begin < first) first = begin;
  }
  return first;
}

void ProducerStates::settle(Offset high_watermark) {
  decided_.erase(decided_.begin(), decided_.lower_bound(high_watermark));
}

void ProducerStates::expire(Timestamp now, std::int64_t idle_ms) {
  std::erase_if(producers_, [now, idle_ms](const auto& entry) {
    const auto& producer = entry.second;
    return producer.transaction_first == Offset{} && now.ms - producer.last_seen.ms >= idle_ms;
  });
}

void ProducerStates::clear() {
  producers_.clear();
  open_.clear();
  decided_.clear();
}

std::vector<ProducerInfo> ProducerStates::describe() const {
  std::vector<ProducerInfo> described;
  for (const auto& [id, producer] : producers_) {
    described.push_back({.producer_id = id,
                         .producer_epoch = producer.epoch,
                         .last_sequence = producer.last_sequence(),
                         .last_timestamp = producer.newest_record,
                         .coordinator_epoch = producer.coordinator_epoch,
                         .transaction_start = producer.transaction_first});
  }
  std::ranges::sort(described, {}, &ProducerInfo::producer_id);
  return described;
}

ProducerEnds ProducerStates::ends() const {
  ProducerEnds ends;
  ends.reserve(producers_.size());
  for (const auto& [id, producer] : producers_) {
    const auto& batches = producer.batches;
    ends.emplace(
        id, ProducerEnd{.epoch = producer.epoch,
                        .last_offset = batches.empty() ? Offset{} : batches.back().last_offset});
  }
  return ends;
}

Buffer ProducerStates::snapshot() const {
  const std::map<std::int64_t, const Producer*> sorted = [this] {
    std::map<std::int64_t, const Producer*> by_id;
    for (const auto& [id, producer] : producers_) by_id.emplace(id, &producer);
    return by_id;
  }();
  MutableBuffer file(rows_at + sorted.size() * row_bytes);
  auto* start = file.data();
  auto* at = start + rows_at;
  for (const auto& [id, producer] : sorted) {
    const auto batch = producer->batches.empty() ? Batch{} : producer->batches.back();
    store_be(at, id);
    store_be(at + 8, producer->epoch);
    store_be(at + 10, producer->last_sequence());
    store_be(at + 14, batch.last_offset.value);
    store_be(at + 22, batch.offset_delta);
    store_be(at + 26, producer->newest_record.ms);
    store_be(at + 34, producer->coordinator_epoch);
    store_be(at + 38, producer->transaction_first.value);
    at += row_bytes;
  }
  file.filled(file.capacity());
  store_be(start, snapshot_version);
  store_be(start + count_at, static_cast<std::int32_t>(sorted.size()));
  store_be(start + crc_at, crc32c(file.bytes().subspan(count_at)));
  return std::move(file).freeze();
}

Result<> ProducerStates::restore(Bytes snapshot, Timestamp now) {
  clear();
  const auto corrupt = [](std::string what) {
    return Error{Errc::corrupt, "producer snapshot: " + std::move(what)};
  };
  if (snapshot.size() < rows_at)
    return corrupt("only " + std::to_string(snapshot.size()) + " bytes");
  const auto version = load_be<std::int16_t>(snapshot.data());
  if (version != snapshot_version) {
    return corrupt("version " + std::to_string(version) + ", expected 1");
  }
  if (load_be<std::uint32_t>(snapshot.data() + crc_at) != crc32c(snapshot.subspan(count_at))) {
    return corrupt("crc does not match");
  }
  const auto rows = snapshot.subspan(rows_at);
  const auto count = load_be<std::int32_t>(snapshot.data() + count_at);
  if (count < 0 || rows.size() != static_cast<std::size_t>(count) * row_bytes) {
    return corrupt(std::to_string(count) + " rows in " + std::to_string(rows.size()) + " bytes");
  }
  for (std::size_t row = 0; row < static_cast<std::size_t>(count); ++row) {
    restore_row(rows.data() + row * row_bytes, now);
  }
  return {};
}

void ProducerStates::restore_row(const std::byte* row, Timestamp now) {
  auto& producer = producers_[load_be<std::int64_t>(row)];
  producer.epoch = load_be<std::int16_t>(row + 8);
  producer.newest_record = {load_be<std::int64_t>(row + 26)};
  producer.last_seen = now;
  producer.coordinator_epoch = load_be<std::int32_t>(row + 34);
  producer.transaction_first = {load_be<std::int64_t>(row + 38)};
  if (producer.transaction_first != Offset{}) open_.insert(producer.transaction_first);

  const auto last_sequence = load_be<std::int32_t>(row + 10);
  const auto offset_delta = load_be<std::int32_t>(row + 22);
  if (last_sequence < 0) return;  // known by a marker alone
  // The first sequence is behind the last by as many steps, around 2^31.
  const auto first_sequence = static_cast<std::int32_t>(
      (std::int64_t{last_sequence} - offset_delta) & std::numeric_limits<std::int32_t>::max());
  producer.batches.push_back({.first_sequence = first_sequence,
                              .last_sequence = last_sequence,
                              .last_offset = {load_be<std::int64_t>(row + 14)},
                              .offset_delta = offset_delta});
}

}  // namespace millrace::kernel
