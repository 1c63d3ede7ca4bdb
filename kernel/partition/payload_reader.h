// Walks the batches of a payload, whatever it is made of, without reading more than their headers.
#pragma once

#include <cstdint>
#include <functional>

#include <millrace/batch.h>
#include <millrace/payload.h>

namespace millrace::kernel {

/// Where one entry stands in a payload, and its header. Only V2 entries have a whole header; of
/// older ones offset, length and magic are filled in.
struct FoundBatch {
  BatchHeader header;
  std::uint64_t position = 0;
};

/// Calls `each` for every whole entry of `payload`, in order; stops early when it returns false.
/// Reads files, so it may block.  [a worker; or anywhere, for a payload of buffers]
Result<> for_each_batch(const Payload& payload, const std::function<bool(const FoundBatch&)>& each);

/// The bytes [position, position + size) of the payload, which must have them. Shares where they
/// are within one buffer. May block.
Result<Buffer> copy_range(const Payload& payload, std::uint64_t position, std::uint64_t size);

}  // namespace millrace::kernel
