// A storage backend under test, and batches to fill it with.
#pragma once

#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <millrace/batch.h>
#include <millrace/shard.h>
#include <millrace/storage.h>

namespace millrace::testing {

/// What `result` holds. An error ends the test, by an exception that says what went wrong: a
/// backend that is not ready yet fails cases, and does not take the program down.
template <class T>
T required(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  return *std::move(result);
}

/// A backend under test, in an environment of its own.
class StorageSubject {
 public:
  virtual ~StorageSubject() = default;
  /// Instances made one after the other see the same data.
  virtual Storage& storage() = 0;
  /// Ends the instance and makes the next one; its logs have been closed.
  virtual void restart() = 0;
  /// Where logs are opened; the caller's thread is this shard's.
  virtual Shard& shard() = 0;
  /// Lets the environment work until `done` holds.
  virtual void run_until(const std::function<bool()>& done) = 0;

  /// Runs a task to its end.
  template <class T>
  Result<T> run(Task<T> task) {
    auto pending = start(shard(), std::move(task));
    run_until([&pending] { return pending.is_ready(); });
    return pending.await_resume();
  }
};

/// A batch of `records` records whose offsets start at `base`, all of one timestamp.
inline Buffer make_batch(Offset base, std::int32_t records, Timestamp time,
                         std::size_t value_bytes = 10) {
  BatchBuilder builder(BatchBuilder::Settings{.base_offset = base});
  const std::string value(value_bytes, static_cast<char>('a' + base.value % 26));
  for (std::int32_t at = 0; at < records; ++at) builder.add(time, std::nullopt, as_bytes(value));
  return required(std::move(builder).finish());
}

inline BatchParts parts_of(const Buffer& batch) {
  const auto header = required(read_batch_header(batch));
  return {.header = batch.slice(0, batch_header_bytes),
          .body = batch.slice(batch_header_bytes),
          .base_offset = header.base_offset,
          .last_offset = header.last_offset(),
          .max_timestamp = header.max_timestamp};
}

/// Appends one batch at the log's end and returns its bytes.
inline Buffer append_batch(PartitionLog& log, std::int32_t records, Timestamp time = {1000},
                           std::size_t value_bytes = 10) {
  auto batch = make_batch(log.bounds().end, records, time, value_bytes);
  const auto parts = parts_of(batch);
  const auto ticket = log.append(std::span(&parts, 1));
  EXPECT_TRUE(ticket) << to_string(ticket.error());
  return batch;
}

inline ReadRequest everything_from(Offset from) {
  return {.from = from, .limit = {INT64_MAX}, .bytes_max = UINT64_MAX};
}

/// The bytes of a read, or the error as text.
inline std::string read_text(StorageSubject& subject, PartitionLog& log, ReadRequest request) {
  const auto payload = subject.run(log.read(request));
  if (!payload) return to_string(payload.error());
  const auto bytes = payload->flatten();
  return bytes ? std::string(bytes->text()) : to_string(bytes.error());
}

inline std::string joined(std::initializer_list<Buffer> batches) {
  std::string text;
  for (const auto& batch : batches) text += batch.text();
  return text;
}

inline const TopicPartition orders{"orders", 0};

}  // namespace millrace::testing
