// What a partition remembers of idempotent producers: enough to tell a repeated batch from a new
// one and to refuse one that is out of order (KIP-98, KIP-360).
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <variant>

#include <millrace/batch.h>
#include <millrace/error_code.h>
#include <millrace/result.h>
#include <millrace/types.h>

namespace millrace::kernel {

/// [partition's shard]
class ProducerStates {
 public:
  /// A producer may have so many requests under way; each may have to be recognised again.
  static constexpr std::size_t batches_kept_max = 5;

  struct Duplicate {
    Offset base_offset;
    Offset last_offset;
  };
  struct Refused {
    ErrorCode error = ErrorCode::none;
    std::string message;
  };
  struct Accepted {};
  using Verdict = std::variant<Accepted, Duplicate, Refused>;

  /// What to do with a batch that has a producer id. Changes nothing.
  Verdict check(const BatchHeader& header) const;
  /// Takes note of an appended batch; `header` has its offsets. Batches without producer id and
  /// control batches are passed over.
  void append(const BatchHeader& header, Timestamp now);
  /// Forgets producers that have sent nothing for `idle_ms`.
  void expire(Timestamp now, std::int64_t idle_ms);
  std::size_t producers() const noexcept { return producers_.size(); }

  /// Kafka's `.snapshot` format, version 1: the last batch of each producer.
  Buffer snapshot() const;
  /// Replaces the state. Errc::corrupt leaves it empty.
  Result<> restore(Bytes snapshot);

 private:
  struct Batch {
    std::int32_t first_sequence = -1;
    std::int32_t last_sequence = -1;
    Offset last_offset;
    std::int32_t offset_delta = 0;
  };
  struct Producer {
    std::int16_t epoch = -1;
    std::deque<Batch> batches;  // newest last
    Timestamp last_seen;
  };

  std::unordered_map<std::int64_t, Producer> producers_;
};

/// Sequences run from 0 to 2^31-1 and begin again.
std::int32_t sequence_after(std::int32_t sequence, std::int32_t steps) noexcept;

}  // namespace millrace::kernel
