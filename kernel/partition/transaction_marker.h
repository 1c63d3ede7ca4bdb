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

}  // namespace millrace::kernel
