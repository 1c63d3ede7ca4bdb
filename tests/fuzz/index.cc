// The files beside a segment are caches or notes: whatever is in them, the log opens, and every
// record is found where it is found without them.
#include <array>

#include "log_folder.h"

using namespace millrace;

namespace {

constexpr int batches = 40;

constexpr std::array<const char*, 6> names{
    "00000000000000000000.index",    "00000000000000000000.timeindex",
    "00000000000000000000.txnindex", "00000000000000000040.snapshot",
    "leader-epoch-checkpoint",       "partition.metadata"};

const std::string& segment() {
  static const auto bytes = [] {
    std::string all;
    for (int at = 0; at < batches; ++at) {
      all += millrace::testing::make_batch(Offset{at}, 1, Timestamp{1000 + at}, 500).text();
    }
    return all;
  }();
  return bytes;
}

Offset first_offset(const Buffer& read) {
  return fuzz::need(read_entry_head(read.bytes()), "a batch").offset;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  fuzz::LogFolder folder;
  folder.put("00000000000000000000.log", as_bytes(segment()));
  folder.put(names[input.byte() % names.size()], input.rest());
  if (!folder.open()) return 0;  // a topic id that cannot be read is refused
  auto& log = folder.log();
  fuzz::require(log.bounds().end == Offset{batches}, "the log has its records");
  for (const int at : {0, 7, 23, batches - 1}) {
    const auto read = fuzz::need(folder.read(Offset{at}), "an offset is read");
    fuzz::require(first_offset(read) == Offset{at}, "from the batch that has it");
    const auto found = fuzz::need(folder.run([&] { return log.batch_at(Timestamp{1000 + at}); }),
                                  "a time is looked up");
    fuzz::require(found.base_offset == Offset{at}, "and leads to its batch");
  }
  static_cast<void>(folder.run([&] { return log.aux(AuxKind::producer_snapshot); }));
  static_cast<void>(folder.run([&] { return log.aux(AuxKind::leader_epochs); }));
  folder.close();
  return 0;
}
