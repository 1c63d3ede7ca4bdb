// The control record that ends a transaction (KIP-98).
#pragma once

#include <cstdint>
#include <optional>

#include <millrace/batch.h>

namespace millrace::kernel {

struct TransactionMarker {
  bool commit = false;
  std::int32_t coordinator_epoch = -1;
};

/// What a control batch says; none for those that are not about transactions. Errc::corrupt when
/// its one record is not what it should be.
Result<std::optional<TransactionMarker>> read_marker(const BatchHeader& header, Bytes batch);

/// The control batch that says so, at offset 0.
Buffer write_marker(std::int64_t producer_id, std::int16_t producer_epoch,
                    const TransactionMarker& marker, Timestamp now);

}  // namespace millrace::kernel
