#include "kernel/partition/producer_state.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include <millrace/bytes.h>

namespace millrace::kernel {

namespace {

// The file: version, crc of what follows, number of rows, rows.
constexpr std::int16_t snapshot_version = 1;
constexpr std::size_t crc_at = 2;
constexpr std::size_t count_at = 6;
constexpr std::size_t rows_at = 10;
constexpr std::size_t row_bytes = 46;

constexpr std::int32_t no_coordinator_epoch = -1;
constexpr std::int64_t no_transaction = -1;

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
  const auto expected = sequence_after(producer.batches.back().last_sequence, 1);
  if (header.base_sequence == expected) return Accepted{};
  return Refused{ErrorCode::out_of_order_sequence_number,
                 who + " sent sequence " + std::to_string(header.base_sequence) + ", expected " +
                     std::to_string(expected)};
}

void ProducerStates::append(const BatchHeader& header, Timestamp now) {
  if (header.producer_id < 0 || header.control()) return;
  auto& producer = producers_[header.producer_id];
  if (producer.epoch != header.producer_epoch) producer.batches.clear();
  producer.epoch = header.producer_epoch;
  producer.last_seen = now;
  producer.batches.push_back(
      {.first_sequence = header.base_sequence,
       .last_sequence = sequence_after(header.base_sequence, header.last_offset_delta),
       .last_offset = header.last_offset(),
       .offset_delta = header.last_offset_delta});
  if (producer.batches.size() > batches_kept_max) producer.batches.pop_front();
}

void ProducerStates::expire(Timestamp now, std::int64_t idle_ms) {
  std::erase_if(producers_, [now, idle_ms](const auto& entry) {
    return now.ms - entry.second.last_seen.ms >= idle_ms;
  });
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
    const auto& batch = producer->batches.back();
    store_be(at, id);
    store_be(at + 8, producer->epoch);
    store_be(at + 10, batch.last_sequence);
    store_be(at + 14, batch.last_offset.value);
    store_be(at + 22, batch.offset_delta);
    store_be(at + 26, producer->last_seen.ms);
    store_be(at + 34, no_coordinator_epoch);
    store_be(at + 38, no_transaction);
    at += row_bytes;
  }
  file.filled(file.capacity());
  store_be(start, snapshot_version);
  store_be(start + count_at, static_cast<std::int32_t>(sorted.size()));
  store_be(start + crc_at, crc32c(file.bytes().subspan(count_at)));
  return std::move(file).freeze();
}

Result<> ProducerStates::restore(Bytes snapshot) {
  producers_.clear();
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
    const auto* at = rows.data() + row * row_bytes;
    const auto last_sequence = load_be<std::int32_t>(at + 10);
    const auto offset_delta = load_be<std::int32_t>(at + 22);
    if (last_sequence < 0) continue;  // known by a transaction marker alone
    // The first sequence is behind the last by as many steps, around 2^31.
    const auto first_sequence = static_cast<std::int32_t>(
        (std::int64_t{last_sequence} - offset_delta) & std::numeric_limits<std::int32_t>::max());
    auto& producer = producers_[load_be<std::int64_t>(at)];
    producer.epoch = load_be<std::int16_t>(at + 8);
    producer.last_seen = {load_be<std::int64_t>(at + 26)};
    producer.batches.push_back({.first_sequence = first_sequence,
                                .last_sequence = last_sequence,
                                .last_offset = {load_be<std::int64_t>(at + 14)},
                                .offset_delta = offset_delta});
  }
  return {};
}

}  // namespace millrace::kernel
