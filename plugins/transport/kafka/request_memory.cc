#include "request_memory.h"

namespace millrace::kafka_transport {

Task<RequestMemory::Lease> RequestMemory::acquire(std::size_t bytes) {
  Lease lease;
  if (is_large(bytes)) {
    auto arriving = acquire_of(arriving_, bytes);
    MR_CO_TRY(lease.arriving, co_await std::move(arriving));
  }
  auto acquiring = acquire_of(budget_, bytes);
  MR_CO_TRY(lease.frame, co_await std::move(acquiring));
  co_return std::move(lease);
}

Task<MemoryBudget::Lease> RequestMemory::acquire_of(MemoryBudget& budget, std::size_t bytes) {
  const auto used = budget.bytes_used();
  if (budget.waiting() > 0 || (used > 0 && used + bytes > budget.bytes_max())) waited_for_();
  return budget.acquire(bytes);
}

}  // namespace millrace::kafka_transport
