#include "kernel/partition/transaction_marker.h"

#include <string>

#include <millrace/bytes.h>

namespace millrace::kernel {

namespace {

// Key: version, type. Value: version, epoch of the coordinator.
constexpr std::size_t key_bytes_min = 4;
constexpr std::size_t value_bytes_min = 6;
constexpr std::int16_t abort_type = 0;
constexpr std::int16_t commit_type = 1;

Result<std::optional<TransactionMarker>> marker_of(const RecordView& record) {
  if (!record.key || record.key->size() < key_bytes_min) {
    return Error{Errc::corrupt, "a control record at offset " +
                                    std::to_string(record.offset.value) + " has no type"};
  }
  const auto type = load_be<std::int16_t>(record.key->data() + 2);
  if (type != abort_type && type != commit_type) return std::nullopt;
  if (!record.value || record.value->size() < value_bytes_min) {
    return Error{Errc::corrupt, "a transaction marker at offset " +
                                    std::to_string(record.offset.value) +
                                    " has no coordinator epoch"};
  }
  return TransactionMarker{type == commit_type, load_be<std::int32_t>(record.value->data() + 2)};
}

}  // namespace

Result<std::optional<TransactionMarker>> read_marker(const BatchHeader& header, Bytes batch) {
  Result<std::optional<TransactionMarker>> found = std::nullopt;
  MR_CHECK(for_each_record(header, batch.subspan(batch_header_bytes),
                           [&found](const RecordView& record) {
                             found = marker_of(record);
                             return false;
                           }));
  return found;
}

Buffer write_marker(std::int64_t producer_id, std::int16_t producer_epoch,
                    const TransactionMarker& marker, Timestamp now) {
  std::byte key[key_bytes_min];
  store_be(key, std::int16_t{0});
  store_be(key + 2, marker.commit ? commit_type : abort_type);
  std::byte value[value_bytes_min];
  store_be(value, std::int16_t{0});
  store_be(value + 2, marker.coordinator_epoch);
  BatchBuilder builder({.producer_id = producer_id,
                        .producer_epoch = producer_epoch,
                        .transactional = true,
                        .control = true});
  builder.add(now, Bytes(key), Bytes(value));
  auto batch = std::move(builder).finish();
  MR_ASSERT(batch.has_value());
  return *std::move(batch);
}

}  // namespace millrace::kernel
