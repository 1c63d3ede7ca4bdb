#include "kernel/streams/replay.h"

#include <string>
#include <utility>

#include "kernel/partition/payload_reader.h"

namespace millrace::kernel {

namespace {

Error at_offset(const EntryHead& head, Error error) {
  error.detail = "offset " + std::to_string(head.offset.value) + ": " + error.detail;
  return error;
}

Result<ReplayBatch> open_batch(const Buffer& bytes, const Codecs& codecs) {
  ReplayBatch batch;
  MR_TRY(batch.header, read_batch_header(bytes));
  if (!verify_crc(bytes)) return Error{Errc::corrupt, "crc does not match"};
  if (batch.header.control()) {
    MR_TRY(batch.marker, read_marker(batch.header, bytes));
  } else {
    MR_TRY(batch.records, open_records(batch.header, bytes, codecs, records_bytes_max));
  }
  return batch;
}

Result<ReplayBatch> open_legacy(const Buffer& bytes, std::int8_t magic, const Codecs& codecs) {
  ReplayBatch batch;
  batch.header.magic = magic;
  MR_TRY(batch.legacy, open_legacy_entry(bytes, codecs, records_bytes_max));
  return batch;
}

}  // namespace

Result<ReplayStep> open_step(const Payload& batches, Offset from, const Codecs& codecs) {
  ReplayStep step{.batches = {}, .next = from, .bytes = batches.size()};
  if (batches.empty()) return step;
  MR_TRY(const auto all, copy_range(batches, 0, batches.size()));
  for (std::size_t at = 0; at < all.size();) {
    const auto rest = all.bytes().subspan(at);
    MR_TRY(const auto head, read_entry_head(rest));
    const auto bytes = all.slice(at, head.total_bytes);
    auto opened =
        head.magic >= 2 ? open_batch(bytes, codecs) : open_legacy(bytes, head.magic, codecs);
    if (!opened) return at_offset(head, std::move(opened).error());
    step.next = (head.magic >= 2 ? opened->header.last_offset() : head.offset) + 1;
    step.batches.push_back(*std::move(opened));
    at += head.total_bytes;
  }
  return step;
}

Task<ReplayStep> read_step(std::shared_ptr<Partition> partition, Offset from,
                           std::uint64_t bytes_max, Codecs codecs, BlockingPool& workers) {
  MR_CO_TRY(auto batches, co_await partition->read_own(from, bytes_max));
  auto work = [batches = std::move(batches), from, codecs] {
    return open_step(batches, from, codecs);
  };
  auto opening = on_worker(workers, std::move(work));
  co_return co_await std::move(opening);
}

}  // namespace millrace::kernel
