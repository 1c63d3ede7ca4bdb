// A V2 batch that is written record by record in place, and can take records back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <millrace/batch.h>
#include <millrace/buffer.h>

namespace millrace::kernel {

/// Room for the header is in front from the start, so that a finished batch is not copied. Not
/// compressed.  [one thread at a time]
class StreamBatch {
 public:
  /// What rewind() goes back to.
  struct Mark {
    std::size_t bytes = batch_header_bytes;
    std::int32_t records = 0;
    Timestamp max_timestamp;
  };

  void add(Timestamp timestamp, std::optional<Bytes> key, std::optional<Bytes> value,
           std::span<const HeaderView> headers);
  Mark mark() const noexcept {
    return {records_ == 0 ? batch_header_bytes : bytes_.size(), records_, max_timestamp_};
  }
  void rewind(const Mark& mark) noexcept;

  std::int32_t records() const noexcept { return records_; }
  /// Of the batch as it is.
  std::size_t bytes() const noexcept { return mark().bytes; }
  std::size_t capacity() const noexcept { return bytes_.capacity(); }
  /// The most that one more record takes beside its key, value and headers.
  static constexpr std::size_t record_overhead_max = 48;

  struct Producer {
    std::int64_t id = -1;
    std::int16_t epoch = -1;
    std::int32_t sequence = -1;
  };
  /// The whole batch; begins anew. There is a record.
  Buffer finish(const Producer& producer);

 private:
  void make_room(std::size_t bytes);

  MutableBuffer bytes_;
  std::int32_t records_ = 0;
  Timestamp base_timestamp_;
  Timestamp max_timestamp_;
};

/// Bytes of key, value and headers.
std::size_t content_bytes(std::optional<Bytes> key, std::optional<Bytes> value,
                          std::span<const HeaderView> headers) noexcept;

}  // namespace millrace::kernel
